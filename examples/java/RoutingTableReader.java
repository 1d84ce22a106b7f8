import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.avro.generic.GenericRecord;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Follows the routing table and routes keys with only a Kafka client and an Avro library, by the rules of
 * docs/reference/protocol.md.
 *
 * <p>Prints a line for each epoch that it shows: epoch, term, digest, row count, and a hash of "slot:leader:followers;"
 * over all slots. Once it is at the end of the topic and has shown the requested epoch, it prints a line for each key
 * ("route", key, slot, slot leader and its addresses) and ends.
 *
 * <p>Arguments: bootstrap servers, topic, folder of the schemas, the epoch after which to stop, seconds to wait for it,
 * and keys to route. The argument {@code -} is no key: standard input then names keys of namespaces in UTF-8, each on a
 * line of its own behind its namespace and a tab. For each it prints a line ("bundle", the bundle's id, the node
 * that serves it and the addresses of that node; or "nobody" and, while the bundle is handed off, the next node with
 * its addresses).
 */
public final class RoutingTableReader {
    private static final Duration POLL = Duration.ofMillis(100);
    private static final long FIRST_PAUSE_MS = 1_000;
    private static final long LONGEST_PAUSE_MS = 60_000;

    private final KafkaConsumer<byte[], byte[]> consumer;
    private final TopicPartition partition;
    private TableReplica replica;

    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        settings.put("isolation.level", "read_committed"); // the client's default shows epochs that were aborted
        settings.put("auto.offset.reset", "none"); // a position that is gone has to be noticed
        settings.put("enable.auto.commit", "false");
        settings.put("allow.auto.create.topics", "false");
        Records records = new Records(Path.of(arguments[2]));
        List<String> keys = Arrays.asList(arguments).subList(5, arguments.length);
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            RoutingTableReader reader = new RoutingTableReader(consumer, arguments[1], new TableReplica(records));
            reader.follow(Long.parseLong(arguments[3]), Duration.ofSeconds(Long.parseLong(arguments[4])));
            for (String key : keys) {
                if (key.equals("-")) {
                    routeLines(reader.replica.inUse());
                } else {
                    System.out.println(routeOf(reader.replica.inUse(), key));
                }
            }
        }
    }

    private RoutingTableReader(KafkaConsumer<byte[], byte[]> consumer, String topic, TableReplica replica) {
        this.consumer = consumer;
        this.partition = new TopicPartition(topic, 0);
        this.replica = replica;
    }

    /** Reads until the requested epoch was shown and the reader is whole at the end of the topic. */
    private void follow(long lastEpoch, Duration patience) throws Exception {
        long deadline = System.nanoTime() + patience.toNanos();
        consumer.assign(List.of(partition));
        consumer.seekToBeginning(List.of(partition));
        TableReplica.Standing standing = TableReplica.Standing.EMPTY;
        long pauseMs = 0;
        while (standing != TableReplica.Standing.WHOLE || replica.inUse().epoch < lastEpoch) {
            if (System.nanoTime() > deadline) {
                throw new IllegalStateException("epoch " + lastEpoch + " did not come; the topic is " + standing);
            }
            try {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(POLL)) {
                    show(replica.take(record.key(), record.value()));
                }
            } catch (OffsetOutOfRangeException error) {
                beginAgain();
                continue;
            }
            // The position passes control records, which the offset of the last record does not show.
            if (consumer.position(partition) >= consumer.endOffsets(List.of(partition)).get(partition)) {
                standing = replica.atEnd();
                if (standing == TableReplica.Standing.BEGIN_AGAIN) {
                    Thread.sleep(pauseMs); // one time after the other without a whole table between them (R11)
                    pauseMs = Math.min(Math.max(2 * pauseMs, FIRST_PAUSE_MS), LONGEST_PAUSE_MS);
                    beginAgain();
                } else if (standing == TableReplica.Standing.WHOLE) {
                    pauseMs = 0;
                }
            }
        }
    }

    private void beginAgain() {
        replica = replica.beginAgain();
        consumer.seekToBeginning(List.of(partition));
    }

    private static void show(RoutingTable table) throws Exception {
        if (table != null) {
            System.out.printf(
                    "%d %d %s %d %s%n", table.epoch, table.term, table.digest, table.rowCount(), hashOfSlots(table));
        }
    }

    private static String routeOf(RoutingTable table, String key) throws RoutingTable.Unroutable {
        long slot = table.slotOf(key);
        String leader = table.leaderOf(slot);
        return leader == null
                ? "route " + key + " " + slot + " nobody"
                : "route " + key + " " + slot + " " + leader + " " + table.addressesOf(leader);
    }

    private static void routeLines(RoutingTable table) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", 2); // a namespace holds no tab, a key may
            if (parts.length < 2) {
                throw new IllegalArgumentException("no tab between namespace and key: " + line);
            }
            System.out.println(bundleRouteOf(table, parts[0], parts[1]));
        }
    }

    private static String bundleRouteOf(RoutingTable table, String namespace, String key)
            throws RoutingTable.Unroutable {
        String bundle = table.bundleOf(namespace, key);
        String serving = table.servingNodeOf(bundle);
        if (serving != null) {
            return "bundle " + bundle + " " + serving + " " + table.addressesOf(serving);
        }
        String next = table.nextOwnerOf(bundle);
        return "bundle " + bundle + " nobody" + (next == null ? "" : ", next " + next + " " + table.addressesOf(next));
    }

    private static String hashOfSlots(RoutingTable table) throws Exception {
        StringBuilder lines = new StringBuilder();
        for (long slotId = 0; slotId < table.slotCount(); slotId++) {
            GenericRecord slot = table.slot(slotId);
            lines.append(slotId).append(':');
            lines.append(slot == null || slot.get("leader") == null ? "" : slot.get("leader"));
            for (Object follower : slot == null ? List.of() : (List<?>) slot.get("followers")) {
                lines.append(':').append(follower);
            }
            lines.append(';');
        }
        MessageDigest sha = MessageDigest.getInstance("SHA-256");
        return String.format("%064x", new BigInteger(1, sha.digest(lines.toString().getBytes(StandardCharsets.UTF_8))));
    }
}
