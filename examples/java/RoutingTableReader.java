import java.io.IOException;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import org.apache.avro.Schema;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.DecoderFactory;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Rebuilds the routing table from its topic with nothing but a Kafka client and an Avro library.
 *
 * <p>The rule is short: keep the last value of every key; at an epoch marker compute the digest of the rows; if it is the
 * marker's, the rows are the table of that epoch. If it is not, compaction has removed rows that later ones replace:
 * read on. Set {@code isolation.level} to {@code read_committed}: the client's default shows aborted epochs.
 *
 * <p>Prints one line an epoch: epoch, term, digest, row count, and a hash of "slot:leader:followers;" over all slots.
 *
 * <p>Arguments: bootstrap servers, topic, folder of the schemas, the epoch after which to stop, seconds to wait for it.
 */
public final class RoutingTableReader {
    private static final String MARKER_KEY = "main/epoch/marker";
    private static final BigInteger MODULUS = BigInteger.ONE.shiftLeft(64);

    private final Map<Long, Schema> schemas = new HashMap<>();
    private final Map<String, byte[]> rows = new HashMap<>();
    private long lastTerm = 0;

    public static void main(String[] arguments) throws Exception {
        RoutingTableReader reader = new RoutingTableReader(Path.of(arguments[2]));
        reader.follow(arguments[0], arguments[1], Long.parseLong(arguments[3]), Long.parseLong(arguments[4]));
    }

    private RoutingTableReader(Path schemaFolder) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(schemaFolder, "*.avsc")) {
            for (Path file : files) {
                Schema schema = new Schema.Parser().parse(file.toFile());
                schemas.put(SchemaNormalization.parsingFingerprint64(schema), schema);
            }
        }
    }

    private void follow(String bootstrapServers, String topic, long lastEpoch, long seconds) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", bootstrapServers);
        settings.put("isolation.level", "read_committed");
        settings.put("enable.auto.commit", "false");
        settings.put("allow.auto.create.topics", "false");
        long deadline = System.nanoTime() + Duration.ofSeconds(seconds).toNanos();
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            List<TopicPartition> partitions = List.of(new TopicPartition(topic, 0));
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long epoch = 0;
            while (epoch < lastEpoch) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException("epoch " + lastEpoch + " did not come; the last was " + epoch);
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    epoch = Math.max(epoch, fold(record));
                }
            }
        }
    }

    /** Takes one record up; returns the epoch that it completed, or 0. */
    private long fold(ConsumerRecord<byte[], byte[]> record) throws Exception {
        String key = new String(record.key(), StandardCharsets.UTF_8);
        if (!key.equals(MARKER_KEY)) {
            if (record.value() == null) {
                rows.remove(key);
            } else {
                rows.put(key, record.value());
            }
            return 0;
        }
        GenericRecord marker = decode(record.value());
        long term = (Long) marker.get("term");
        if (term < lastTerm) {
            throw new IllegalStateException("term falls from " + lastTerm + " to " + term);
        }
        lastTerm = term;
        String digest = digest();
        if (!digest.equals(marker.get("digest").toString())) {
            return 0;
        }
        System.out.printf(
                "%d %d %s %d %s%n", (Long) marker.get("epoch"), term, digest, rows.size(), hashOfSlots());
        return (Long) marker.get("epoch");
    }

    private String digest() throws NoSuchAlgorithmException {
        BigInteger sum = BigInteger.ZERO;
        for (Map.Entry<String, byte[]> row : rows.entrySet()) {
            byte[] key = row.getKey().getBytes(StandardCharsets.UTF_8);
            MessageDigest sha = MessageDigest.getInstance("SHA-256");
            sha.update(ByteBuffer.allocate(4).putInt(key.length).array());
            sha.update(key);
            sha.update(row.getValue());
            sum = sum.add(new BigInteger(1, Arrays.copyOf(sha.digest(), 8)));
        }
        return String.format("%016x", sum.mod(MODULUS));
    }

    private String hashOfSlots() throws Exception {
        Map<Long, String> lines = new TreeMap<>();
        for (Map.Entry<String, byte[]> row : rows.entrySet()) {
            if (row.getKey().startsWith("main/slot/")) {
                GenericRecord slot = decode(row.getValue());
                StringBuilder line = new StringBuilder();
                line.append(slot.get("slot_id")).append(':').append(slot.get("leader") == null ? "" : slot.get("leader"));
                for (Object follower : (List<?>) slot.get("followers")) {
                    line.append(':').append(follower);
                }
                lines.put((Long) slot.get("slot_id"), line.append(';').toString());
            }
        }
        MessageDigest sha = MessageDigest.getInstance("SHA-256");
        sha.update(String.join("", lines.values()).getBytes(StandardCharsets.UTF_8));
        return String.format("%064x", new BigInteger(1, sha.digest()));
    }

    /** Avro single-object encoding: C3 01, the schema's 64-bit fingerprint (little-endian), the body. */
    private GenericRecord decode(byte[] value) throws IOException {
        ByteBuffer buffer = ByteBuffer.wrap(value).order(ByteOrder.LITTLE_ENDIAN);
        if (buffer.getShort() != (short) 0x01C3) {
            throw new IOException("not in Avro single-object encoding");
        }
        long fingerprint = buffer.getLong();
        Schema schema = schemas.get(fingerprint);
        if (schema == null) {
            throw new IOException("unknown schema fingerprint " + Long.toHexString(fingerprint));
        }
        return new GenericDatumReader<GenericRecord>(schema)
                .read(null, DecoderFactory.get().binaryDecoder(value, buffer.position(), value.length - buffer.position(), null));
    }
}
