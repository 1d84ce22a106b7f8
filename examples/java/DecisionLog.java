import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.avro.generic.GenericRecord;

/** Reads the topic {@code decisions} from its start: joins parts, checks the chain. Rules L1 to L9. */
final class DecisionLog {
    /** The highest feature level that this reader supports. */
    private static final long FEATURE_LEVEL = 3;

    private final Records records;
    private Map<String, Object> pending;
    private long nextPart;
    private long partCount;
    private String logId;
    private long seq;
    private long term;
    private long epoch;
    private String digest = "";
    private String canonical;

    DecisionLog(Records records) {
        this.records = records;
    }

    long seq() {
        return seq;
    }

    long term() {
        return term;
    }

    long epoch() {
        return epoch;
    }

    /** Digest of the last decision. */
    String digest() {
        return digest;
    }

    /** Takes one record. Returns whether it completed the next decision. */
    boolean take(byte[] key, byte[] value) throws TableReplica.Refused {
        Map<String, Object> joined = join(key, value);
        if (joined == null) {
            return false;
        }
        checkChain(joined);
        logId = (String) joined.get("log_id");
        seq = (Long) joined.get("seq");
        term = (Long) joined.get("term");
        epoch = (Long) joined.get("epoch");
        canonical = CanonicalJson.textOf(joined);
        digest = CanonicalJson.digestOf(canonical);
        return true;
    }

    /** Adds a part. Returns the joined decision after the last part, and null before. */
    Map<String, Object> join(byte[] key, byte[] value) throws TableReplica.Refused {
        GenericRecord record = read(key, value);
        if (record == null || (logId != null && !logId.equals(record.get("log_id").toString()))) {
            return null; // no decision, or one of another log: no part of the chain
        }
        if ((Long) record.get("feature_level") > FEATURE_LEVEL) {
            throw new TableReplica.Refused("feature level " + record.get("feature_level") + ": upgrade this reader");
        }
        Map<String, Object> tree = CanonicalJson.treeOf(record, false);
        long part = (Long) tree.remove("part");
        long count = (Long) tree.remove("part_count");
        boolean continues = (Boolean) tree.remove("continues");
        if (pending == null) {
            partCount = count;
            nextPart = 0;
        }
        if (part != nextPart || count != partCount) {
            throw new TableReplica.Refused("part " + part + " of " + count + " stands where part " + nextPart + " has to");
        }
        pending = pending == null ? tree : joined(pending, tree, continues);
        nextPart++;
        if (nextPart < partCount) {
            return null;
        }
        Map<String, Object> whole = pending;
        pending = null;
        return whole;
    }

    private GenericRecord read(byte[] key, byte[] value) throws TableReplica.Refused {
        try {
            GenericRecord record = value == null ? null : records.decode(value);
            return record == null || !record.getSchema().getName().equals("Decision") ? null : record;
        } catch (Records.Unreadable error) {
            if (error.ofUnknownSchema && key != null && Long.toString(seq + 1).equals(new String(key, UTF_8))) {
                throw new TableReplica.Refused(error.getMessage() + ": upgrade this reader");
            }
            return null;
        }
    }

    private void checkChain(Map<String, Object> next) throws TableReplica.Refused {
        long nextTerm = (Long) next.get("term");
        Long opened = null;
        for (Object event : (List<?>) next.get("events")) {
            if ("TermOpened".equals(((Map<?, ?>) event).get("type"))) {
                opened = (Long) ((Map<?, ?>) event).get("term");
            }
        }
        long risen = (Long) next.get("epoch") - epoch;
        boolean continued = (Long) next.get("seq") == seq + 1
                && digest.equals(next.get("previous_digest"))
                && (risen == 0 || risen == 1)
                && (opened == null ? nextTerm == term : opened == nextTerm && nextTerm > term);
        if (!continued) {
            throw new TableReplica.Refused("decision " + next.get("seq") + " does not continue decision " + seq);
        }
    }

    private static Map<String, Object> joined(Map<String, Object> before, Map<String, Object> after, boolean continues)
            throws TableReplica.Refused {
        List<Object> events = new ArrayList<>((List<?>) before.remove("events"));
        List<Object> more = new ArrayList<>((List<?>) after.remove("events"));
        if (continues) {
            Object rest = more.remove(0);
            events.set(events.size() - 1, joined(events.get(events.size() - 1), rest));
        }
        events.addAll(more);
        joined(before, after);
        before.put("events", events);
        return before;
    }

    /** Joins lists, unites maps, and requires all other values to be equal. Changes and returns the first value. */
    @SuppressWarnings("unchecked")
    private static Object joined(Object before, Object after) throws TableReplica.Refused {
        if (before instanceof List && after instanceof List) {
            ((List<Object>) before).addAll((List<Object>) after);
        } else if (before instanceof Map && after instanceof Map) {
            Map<String, Object> map = (Map<String, Object>) before;
            for (Map.Entry<String, Object> entry : ((Map<String, Object>) after).entrySet()) {
                Object known = map.get(entry.getKey());
                map.put(entry.getKey(), known == null ? entry.getValue() : joined(known, entry.getValue()));
            }
        } else if (after != null && !after.equals(before)) {
            throw new TableReplica.Refused("two parts of a decision differ: " + before + " and " + after);
        }
        return before;
    }
}
