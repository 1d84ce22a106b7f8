import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.avro.generic.GenericRecord;

/** One epoch of the table, with lookups of keys. Lookups that need a row that cannot be read fail (R8). */
final class RoutingTable {
    private static final Pattern BUNDLE_KEY =
            Pattern.compile("main/bundle/(.*)/0x([0-9a-f]{8,})_0x([0-9a-f]{8,})", Pattern.DOTALL);

    private static final Set<String> BUNDLE_STATES =
            Set.of("Init", "Free", "Owned", "Assigning", "Releasing", "Splitting", "Deleted");

    final long term;
    final long epoch;
    final long seq;
    final String logId;
    final String digest;

    private final Records records;
    private final Map<ByteBuffer, byte[]> rows;
    private final Map<String, TreeMap<Long, Range>> bundles = new HashMap<>();

    /** Copies the rows that fitted a marker. */
    RoutingTable(Records records, Marker marker, Map<ByteBuffer, byte[]> rows) {
        this.records = records;
        this.rows = new HashMap<>(rows);
        this.term = marker.term;
        this.epoch = marker.epoch;
        this.seq = marker.seq;
        this.logId = marker.logId;
        this.digest = marker.digest;
        for (ByteBuffer key : rows.keySet()) {
            Matcher matched = BUNDLE_KEY.matcher(StandardCharsets.UTF_8.decode(key.duplicate()));
            if (matched.matches()) {
                long upper = Long.parseLong(matched.group(3), 16);
                long end = upper == KeyHashes.LAST_BUNDLE_HASH ? upper + 1 : upper;
                Range range = new Range(end, matched.group());
                long lower = Long.parseLong(matched.group(2), 16);
                Range before = bundles.computeIfAbsent(matched.group(1), name -> new TreeMap<>()).put(lower, range);
                range.reach = before == null ? 0 : Math.max(before.end, before.reach);
            }
        }
        for (TreeMap<Long, Range> ranges : bundles.values()) {
            long reach = 0;
            for (Range range : ranges.values()) {
                range.reach = Math.max(range.reach, reach);
                reach = Math.max(range.end, range.reach);
            }
        }
    }

    int rowCount() {
        return rows.size();
    }

    /** Whether the settings can be read. A table without readable settings is not shown. */
    boolean hasReadableSettings() {
        try {
            return row("main/table/settings", "TableSettings") != null && slotOf("") >= 0;
        } catch (Unroutable error) {
            return false;
        }
    }

    /** The number of slots. */
    long slotCount() throws Unroutable {
        return (Long) row("main/table/settings", "TableSettings").get("slot_count");
    }

    /** The slot of a key. */
    long slotOf(String key) throws Unroutable {
        GenericRecord settings = row("main/table/settings", "TableSettings");
        long count = (Long) settings.get("slot_count");
        try {
            return KeyHashes.slotOf(key, settings.get("hash_function").toString(), count);
        } catch (IllegalArgumentException error) {
            throw new Unroutable("main/table/settings: " + error.getMessage());
        }
    }

    /** The row of a slot; null if it has none yet. */
    GenericRecord slot(long slotId) throws Unroutable {
        GenericRecord slot = row("main/slot/" + slotId, "Slot");
        if (slot != null && (Long) slot.get("slot_id") != slotId) {
            throw new Unroutable("main/slot/" + slotId + " holds the row of slot " + slot.get("slot_id"));
        }
        return slot;
    }

    /** The node that serves a slot; null if there is none in this epoch. */
    String leaderOf(long slotId) throws Unroutable {
        GenericRecord slot = slot(slotId);
        return slot == null || slot.get("leader") == null ? null : slot.get("leader").toString();
    }

    /** The id of the bundle that covers a key. */
    String bundleOf(String namespace, String key) throws Unroutable {
        long hash = KeyHashes.bundleHash(key);
        TreeMap<Long, Range> ranges = bundles.get(namespace);
        Map.Entry<Long, Range> found = ranges == null ? null : ranges.floorEntry(hash);
        if (found == null || hash >= found.getValue().end) {
            throw new Unroutable("no bundle of namespace " + namespace + " covers the key " + key);
        }
        if (hash < found.getValue().reach) {
            throw new Unroutable("several bundles of namespace " + namespace + " cover the key " + key);
        }
        return found.getValue().key.substring("main/bundle/".length());
    }

    /** The node that owns a bundle or still has to release it (B5); null if there is none in this epoch. */
    String ownerOf(String bundleId) throws Unroutable {
        return textOf(bundle(bundleId), "owner");
    }

    /** The node that may serve a bundle (B6); null if there is none in this epoch. */
    String servingNodeOf(String bundleId) throws Unroutable {
        GenericRecord bundle = bundle(bundleId);
        return "Releasing".equals(textOf(bundle, "state")) ? null : textOf(bundle, "owner");
    }

    /** The node that a bundle goes to (B7); null if it goes nowhere. */
    String nextOwnerOf(String bundleId) throws Unroutable {
        return textOf(bundle(bundleId), "next_owner");
    }

    private GenericRecord bundle(String bundleId) throws Unroutable {
        GenericRecord bundle = row("main/bundle/" + bundleId, "Bundle");
        String named = String.format(
                "%s/0x%08x_0x%08x", bundle.get("namespace"), (Long) bundle.get("lower"), (Long) bundle.get("upper"));
        if (!named.equals(bundleId)) {
            throw new Unroutable("main/bundle/" + bundleId + " holds the row of bundle " + named);
        }
        String state = textOf(bundle, "state");
        if (state != null && !BUNDLE_STATES.contains(state)) {
            throw new Unroutable("main/bundle/" + bundleId + " has the unknown state " + state);
        }
        return bundle;
    }

    /** A field that may be null, or missing in the version in which the row was written. */
    private static String textOf(GenericRecord record, String name) {
        return record.hasField(name) && record.get(name) != null ? record.get(name).toString() : null;
    }

    /** The addresses of a node, as {@code name=host:port}; empty if the table has none. */
    String addressesOf(String nodeId) throws Unroutable {
        GenericRecord node = row("main/node/" + nodeId, "NodeRow");
        StringBuilder line = new StringBuilder();
        for (Object each : node == null ? List.of() : (List<?>) node.get("addresses")) {
            GenericRecord address = (GenericRecord) each;
            line.append(line.length() == 0 ? "" : ",").append(address.get("name")).append('=');
            line.append(address.get("host")).append(':').append(address.get("port"));
        }
        return line.toString();
    }

    private GenericRecord row(String key, String kind) throws Unroutable {
        byte[] value = rows.get(ByteBuffer.wrap(key.getBytes(StandardCharsets.UTF_8)));
        if (value == null) {
            return null;
        }
        try {
            GenericRecord record = records.decode(value);
            if (!record.getSchema().getName().equals(kind)) {
                throw new Unroutable(key + " holds a " + record.getSchema().getName());
            }
            return record;
        } catch (Records.Unreadable error) {
            throw new Unroutable(key + " cannot be read: " + error.getMessage());
        }
    }

    /** A lookup that this reader cannot answer, with the key of the row that it cannot read. */
    static final class Unroutable extends Exception {
        private static final long serialVersionUID = 1;

        Unroutable(String message) {
            super(message);
        }
    }

    private static final class Range {
        /** The number after its last hash. */
        final long end;
        final String key;
        /** The greatest end of the other ranges that do not begin after this one. */
        long reach;

        Range(long end, String key) {
            this.end = end;
            this.key = key;
        }
    }
}
