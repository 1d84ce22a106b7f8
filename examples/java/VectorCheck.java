import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.ByteArrayOutputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.EncoderFactory;
import org.apache.avro.io.JsonEncoder;

/**
 * Runs the vectors of schemas/vectors through this reader. Prints a line for each file and one for each case that
 * differs. The exit status is 1 if any differs. Argument: the folder of the schemas.
 */
public final class VectorCheck {
    private static final ObjectMapper JSON = new ObjectMapper();

    private final Path folder;
    private final Records records;
    private final List<String> differences = new ArrayList<>();

    public static void main(String[] arguments) throws Exception {
        VectorCheck check = new VectorCheck(Path.of(arguments[0]));
        check.run("hashes", check::slots);
        check.run("bundles", check::bundles);
        check.run("records", check::record);
        check.run("table_digests", check::tableDigest);
        check.run("decision_digests", check::decisionDigest);
        check.run("decision_logs", check::decisionLog);
        check.run("reader_scripts", check::script);
        check.differences.forEach(System.out::println);
        System.exit(check.differences.isEmpty() ? 0 : 1);
    }

    private VectorCheck(Path folder) throws Exception {
        this.folder = folder;
        this.records = new Records(folder);
    }

    private interface Computation {
        /** This reader's results, in the form of the case's expected results. */
        JsonNode of(JsonNode given) throws Exception;
    }

    private void run(String name, Computation computation) throws Exception {
        JsonNode cases = JSON.readTree(folder.resolve("vectors").resolve(name + ".json").toFile());
        for (JsonNode each : cases) {
            JsonNode computed = computation.of(each);
            if (!covers(computed, each)) {
                differences.add(name + ": " + each.get("name").asText() + ": " + computed);
            }
        }
        System.out.println(name + ": " + cases.size() + " cases");
    }

    /** Whether every computed field equals the expected one. The other fields of a case are input. */
    private static boolean covers(JsonNode computed, JsonNode expected) {
        for (Map.Entry<String, JsonNode> field : computed.properties()) {
            if (!field.getValue().equals(expected.get(field.getKey()))) {
                return false;
            }
        }
        return computed.size() > 0;
    }

    private static byte[] bytes(JsonNode text) {
        return text == null || text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    /** The same tree, written and read again, because numbers of equal value are equal only then. */
    private static JsonNode reread(JsonNode tree) throws Exception {
        return JSON.readTree(JSON.writeValueAsBytes(tree));
    }

    private JsonNode slots(JsonNode given) throws Exception {
        String key = given.get("key").asText();
        ObjectNode computed = JSON.createObjectNode().put("crc32c", KeyHashes.crc32c(key));
        ObjectNode slots = computed.putObject("slots");
        for (Map.Entry<String, JsonNode> function : given.get("slots").properties()) {
            ObjectNode found = slots.putObject(function.getKey());
            for (Map.Entry<String, JsonNode> count : function.getValue().properties()) {
                long slot = KeyHashes.slotOf(key, function.getKey(), Long.parseLong(count.getKey()));
                found.put(count.getKey(), slot);
            }
        }
        return reread(computed);
    }

    private JsonNode bundles(JsonNode given) throws Exception {
        long hash = KeyHashes.bundleHash(given.get("key").asText());
        ObjectNode computed = JSON.createObjectNode().put("crc32", hash);
        ObjectNode bundles = computed.putObject("bundles");
        for (Map.Entry<String, JsonNode> each : given.get("bundles").properties()) {
            long count = Long.parseLong(each.getKey());
            for (long index = 0; index < count; index++) {
                long lower = index * ((1L << 32) / count);
                long upper = index == count - 1 ? KeyHashes.LAST_BUNDLE_HASH : lower + (1L << 32) / count;
                if (lower <= hash && (hash < upper || hash == KeyHashes.LAST_BUNDLE_HASH && hash == upper)) {
                    bundles.put(each.getKey(), String.format("kv/0x%08x_0x%08x", lower, upper));
                }
            }
        }
        return reread(computed);
    }

    private JsonNode record(JsonNode given) throws Exception {
        byte[] value = bytes(given.get("value"));
        GenericRecord decoded = records.decode(value);
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        JsonEncoder encoder = EncoderFactory.get().jsonEncoder(decoded.getSchema(), text);
        new GenericDatumWriter<GenericRecord>(decoded.getSchema()).write(decoded, encoder);
        encoder.flush();
        ObjectNode computed = JSON.createObjectNode().put("schema", records.versionOf(value));
        return computed.set("json", JSON.readTree(text.toByteArray()));
    }

    private JsonNode tableDigest(JsonNode given) {
        long digest = 0;
        for (JsonNode row : given.get("rows")) {
            digest += TableReplica.share(bytes(row.get("key")), bytes(row.get("value")));
        }
        return JSON.createObjectNode().put("digest", String.format("%016x", digest));
    }

    private JsonNode decisionDigest(JsonNode given) throws Exception {
        DecisionLog log = new DecisionLog(records);
        Map<String, Object> joined = null;
        for (JsonNode part : given.get("values")) {
            joined = log.join(null, bytes(part));
        }
        String canonical = CanonicalJson.textOf(joined);
        return JSON.createObjectNode().put("canonical", canonical).put("digest", CanonicalJson.digestOf(canonical));
    }

    private JsonNode decisionLog(JsonNode given) throws Exception {
        DecisionLog log = new DecisionLog(records);
        ObjectNode expected = JSON.createObjectNode().put("outcome", "whole");
        ArrayNode decisions = expected.putArray("decisions");
        try {
            for (JsonNode record : given.get("records")) {
                if (log.take(bytes(record.get("key")), bytes(record.get("value")))) {
                    decisions.addObject()
                            .put("seq", log.seq())
                            .put("term", log.term())
                            .put("epoch", log.epoch())
                            .put("digest", log.digest());
                }
            }
        } catch (TableReplica.Refused refused) {
            expected.put("outcome", "refused");
        }
        return JSON.createObjectNode().set("expected", reread(expected));
    }

    private JsonNode script(JsonNode given) throws Exception {
        ArrayNode steps = JSON.createArrayNode();
        ScriptedReader reader = null;
        for (JsonNode step : given.get("steps")) {
            if (step.get("reader").asText().equals("new")) {
                reader = new ScriptedReader(records, step.path("log_id").asText(null));
            }
            List<JsonNode> topic = new ArrayList<>();
            step.get("topic").forEach(place -> topic.add(given.get("records").get(place.asInt())));
            ObjectNode came = reader.read(topic, step.get("end_offset").asLong(), step.path("delivered").asLong(-1));
            ObjectNode found = step.deepCopy();
            ObjectNode expected = (ObjectNode) found.get("expected");
            for (JsonNode lookup : expected.path("lookups")) {
                lookUp(reader.inUse(), (ObjectNode) lookup);
            }
            came.retain(expected.properties().stream().map(Map.Entry::getKey).toList());
            expected.setAll(came);
            steps.add(found);
        }
        return reread(JSON.createObjectNode().set("steps", steps));
    }

    /** Replaces the expected results of a lookup by the found ones. */
    private static void lookUp(RoutingTable table, ObjectNode lookup) {
        String key = lookup.get("key").asText();
        JsonNode namespace = lookup.get("namespace");
        lookup.retain("key", "namespace");
        try {
            if (namespace == null) {
                long slot = table.slotOf(key);
                lookup.put("leader", table.leaderOf(slot)).put("slot", slot);
            } else {
                String bundle = table.bundleOf(namespace.asText(), key);
                lookup.put("owner", table.ownerOf(bundle)).put("bundle", bundle);
                lookup.put("serving", table.servingNodeOf(bundle)).put("next_owner", table.nextOwnerOf(bundle));
            }
        } catch (RoutingTable.Unroutable error) {
            lookup.put("unroutable", true);
        }
    }

    /** A reader over the records that a step lists, as a consumer would deliver them. */
    private static final class ScriptedReader {
        private TableReplica replica;
        private long position;
        private boolean wholeOnce;
        private boolean refused;

        ScriptedReader(Records records, String logId) {
            replica = new TableReplica(records, logId);
        }

        /** The table by which keys are routed; null before the first whole end, and after a refusal. */
        RoutingTable inUse() {
            return wholeOnce && !refused ? replica.inUse() : null;
        }

        /** Reads to the end; if {@code delivered} is not negative, only records below it, without reaching the end. */
        ObjectNode read(List<JsonNode> topic, long end, long delivered) {
            ObjectNode came = JSON.createObjectNode();
            ArrayNode shown = came.putArray("shown");
            came.put("rebuilt", false);
            try {
                if (delivered >= 0) {
                    takeAll(topic, delivered, shown);
                    return came.put("in_use", inUse() == null ? null : (Long) inUse().epoch);
                }
                TableReplica.Standing standing;
                do {
                    if (position > end) {
                        standing = TableReplica.Standing.BEGIN_AGAIN;
                    } else {
                        takeAll(topic, end, shown);
                        standing = replica.atEnd();
                    }
                    if (standing == TableReplica.Standing.BEGIN_AGAIN) {
                        replica = replica.beginAgain();
                        position = 0;
                        came.put("rebuilt", true);
                    }
                } while (standing == TableReplica.Standing.BEGIN_AGAIN);
                wholeOnce |= standing == TableReplica.Standing.WHOLE;
                came.put("outcome", standing.name().toLowerCase());
            } catch (TableReplica.Refused error) {
                refused = true;
                came.put("outcome", "refused");
            }
            return came.put("in_use", inUse() == null ? null : (Long) inUse().epoch);
        }

        private void takeAll(List<JsonNode> topic, long end, ArrayNode shown) throws TableReplica.Refused {
            for (JsonNode record : topic) {
                long offset = record.get("offset").asLong();
                if (position <= offset && offset < end && !record.has("control")) {
                    RoutingTable table = replica.take(bytes(record.get("key")), bytes(record.get("value")));
                    if (table != null) {
                        shown.add(table.epoch);
                    }
                }
            }
            position = end;
        }
    }
}
