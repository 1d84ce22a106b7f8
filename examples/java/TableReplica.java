import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.generic.GenericRecord;

/**
 * One reading of the topic from its start, which turns records into whole tables. The rules R1 to R13 are those of
 * docs/reference/protocol.md.
 */
final class TableReplica {
    /** The state of a reading at the end of the topic. */
    enum Standing {
        EMPTY,
        WHOLE,
        /** The topic is damaged: keep the table in use and read on, until the leader has repaired it. */
        WAITING,
        /** Read from the start again, with {@link #beginAgain}. */
        BEGIN_AGAIN
    }

    private static final ByteBuffer MARKER_KEY = key("main/epoch/marker");
    private static final ByteBuffer SETTINGS_KEY = key("main/table/settings");

    private final Records records;
    private final Map<ByteBuffer, byte[]> rows = new HashMap<>();
    private long digest;
    private Marker last;
    private String logId;
    private boolean logIdIsGiven;
    private RoutingTable inUse;
    private boolean fitted;
    private boolean unreadableSettings;
    private boolean rowsSinceMarker;
    private boolean markerOverwritten;
    private boolean otherTable;
    private boolean endReached;
    private Marker waitsSince;
    private long passedBy;

    /** A reader without stored state. */
    TableReplica(Records records) {
        this(records, null);
    }

    /** A reader that follows only the log with this id; null: the log of the first table that is whole. */
    TableReplica(Records records, String logId) {
        this.records = records;
        this.logId = logId;
        this.logIdIsGiven = logId != null;
    }

    /** A reading from the start by a reader that keeps its table in use and its log id. */
    TableReplica beginAgain() {
        TableReplica next = new TableReplica(records, logId);
        next.logIdIsGiven = logIdIsGiven;
        next.inUse = inUse;
        next.passedBy = passedBy;
        return next;
    }

    /** The table that was shown last; null before the first. Keys must not be routed by it before a whole end (R9). */
    RoutingTable inUse() {
        return inUse;
    }

    /** The number of records that were neither rows nor markers of this log. */
    long passedBy() {
        return passedBy;
    }

    /** Takes one record. Returns the table that it completes, or null. */
    RoutingTable take(byte[] keyBytes, byte[] value) throws Refused {
        if (keyBytes == null) {
            passedBy++;
            return null;
        }
        ByteBuffer key = ByteBuffer.wrap(keyBytes);
        if (key.equals(MARKER_KEY)) {
            return takeMarker(value);
        }
        rowsSinceMarker = true;
        otherTable = false;
        byte[] before = value == null ? rows.remove(key) : rows.put(key, value);
        digest -= before == null ? 0 : share(keyBytes, before);
        digest += value == null ? 0 : share(keyBytes, value);
        return null;
    }

    private RoutingTable takeMarker(byte[] value) throws Refused {
        Marker marker = readMarker(value);
        if (marker == null || (logId != null && !logId.equals(marker.logId))) {
            markerOverwritten = true;
            otherTable = marker != null && fits(marker);
            passedBy++;
            return null;
        }
        if (logId != null && last != null) {
            checkOrder(last.term, last.epoch, last.seq, last.digest, marker);
        }
        if (inUse != null && marker.epoch >= inUse.epoch) {
            checkOrder(inUse.term, inUse.epoch, inUse.seq, inUse.digest, marker);
        }
        last = marker;
        fitted = fits(marker);
        rowsSinceMarker = false;
        markerOverwritten = false;
        otherTable = false;
        if (!fitted) {
            return null;
        }
        logId = marker.logId;
        if (inUse != null && marker.epoch <= inUse.epoch) {
            return null;
        }
        RoutingTable table = new RoutingTable(records, marker, rows);
        unreadableSettings = !table.hasReadableSettings();
        if (unreadableSettings) {
            return null;
        }
        inUse = table;
        return inUse;
    }

    private Marker readMarker(byte[] value) {
        try {
            GenericRecord record = value == null ? null : records.decode(value);
            return record == null || !record.getSchema().getName().equals("EpochMarker") ? null : new Marker(record);
        } catch (Records.Unreadable error) {
            return null;
        }
    }

    /** To be called whenever the end of the topic is reached (T10). */
    Standing atEnd() throws Refused {
        boolean first = !endReached;
        endReached = true;
        if (inUse != null && (last == null || last.epoch < inUse.epoch)) {
            refuseAnotherTopic();
        }
        if (inUse == null && logIdIsGiven && last == null && otherTable) {
            refuseAnotherTopic();
        }
        if (last == null) {
            return rows.isEmpty() && !markerOverwritten ? Standing.EMPTY : Standing.WAITING;
        }
        if (fitted && unreadableSettings) {
            return Standing.WAITING;
        }
        if (fitted && !(rowsSinceMarker && markerOverwritten)) {
            waitsSince = null;
            return Standing.WHOLE;
        }
        if (first) {
            waitsSince = last;
        }
        // Another marker that does not fit: the leader may have repaired rows by a tombstone that is no longer kept.
        return waitsSince == last ? Standing.WAITING : Standing.BEGIN_AGAIN;
    }

    /** The topic does not hold the table in use. It is another topic, unless foreign records may hide the table. */
    private void refuseAnotherTopic() throws Refused {
        if (otherTable) {
            throw new Refused("the topic ends with a whole table of another log than " + logId + ": it was recreated");
        }
        if (fitted || (rows.isEmpty() && !markerOverwritten)) {
            throw new Refused("the topic ends at " + last + ", and epoch " + inUse.epoch + " was read: it went back");
        }
    }

    private boolean fits(Marker marker) {
        return marker.rowCount == rows.size()
                && marker.digest.equals(String.format("%016x", digest))
                && rows.containsKey(SETTINGS_KEY);
    }

    private static void checkOrder(long term, long epoch, long seq, String digest, Marker after) throws Refused {
        if (after.term < term || after.epoch < epoch || after.seq < seq) {
            throw new Refused(after + " follows epoch " + epoch + " (term " + term + ", seq " + seq + ")");
        }
        if (after.epoch == epoch && !after.digest.equals(digest)) {
            throw new Refused(after + " was read before with digest " + digest);
        }
    }

    /** A row's share of the digest. Sums of longs wrap at 2^64, like the digest. */
    static long share(byte[] key, byte[] value) {
        try {
            MessageDigest sha = MessageDigest.getInstance("SHA-256");
            sha.update(ByteBuffer.allocate(4).putInt(key.length).array());
            sha.update(key);
            sha.update(value);
            return ByteBuffer.wrap(sha.digest()).getLong();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    private static ByteBuffer key(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    /** The topic does not continue the table in use. Only a person can decide which of the two is right (R12). */
    static final class Refused extends Exception {
        private static final long serialVersionUID = 1;

        Refused(String message) {
            super(message);
        }
    }
}
