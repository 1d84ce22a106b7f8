import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.avro.Schema;
import org.apache.avro.SchemaNormalization;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryDecoder;
import org.apache.avro.io.DecoderFactory;

/** Reads framed records with their writers' schemas: rules F1 to F5. */
final class Records {
    private static final int HEADER_BYTES = 10;

    private final Map<Long, Schema> schemas = new HashMap<>();
    private final Map<Long, String> names = new HashMap<>();

    /** Loads every version of every record: files named {@code Record.vN.avsc}. */
    Records(Path schemaFolder) throws IOException {
        try (DirectoryStream<Path> files = Files.newDirectoryStream(schemaFolder, "*.avsc")) {
            for (Path file : files) {
                Schema schema = new Schema.Parser().parse(file.toFile());
                long fingerprint = SchemaNormalization.parsingFingerprint64(schema);
                schemas.put(fingerprint, schema);
                names.put(fingerprint, file.getFileName().toString().replaceAll("\\.avsc$", ""));
            }
        }
    }

    /** Record and version, as {@code Slot.v1}. */
    String versionOf(byte[] value) throws Unreadable {
        return names.get(fingerprintOf(value));
    }

    /** The record in its writer's schema, which names the kind of record. */
    GenericRecord decode(byte[] value) throws Unreadable {
        Schema schema = schemas.get(fingerprintOf(value));
        BinaryDecoder decoder =
                DecoderFactory.get().binaryDecoder(value, HEADER_BYTES, value.length - HEADER_BYTES, null);
        try {
            GenericRecord record = new GenericDatumReader<GenericRecord>(schema).read(null, decoder);
            if (!decoder.isEnd()) {
                throw new Unreadable("bytes are left behind the record", false);
            }
            return record;
        } catch (IOException | RuntimeException error) {
            throw new Unreadable("the body is no " + schema.getName() + ": " + error, false);
        }
    }

    private long fingerprintOf(byte[] value) throws Unreadable {
        if (value.length < HEADER_BYTES || value[0] != (byte) 0xC3 || value[1] != 1) {
            throw new Unreadable("not in Avro single-object encoding", false);
        }
        long fingerprint = ByteBuffer.wrap(value, 2, 8).order(ByteOrder.LITTLE_ENDIAN).getLong();
        if (!schemas.containsKey(fingerprint)) {
            throw new Unreadable("unknown schema fingerprint " + Long.toHexString(fingerprint), true);
        }
        return fingerprint;
    }

    /** A value that this reader cannot read. */
    static final class Unreadable extends Exception {
        private static final long serialVersionUID = 1;

        /** Whether a later version of the software may have written it. */
        final boolean ofUnknownSchema;

        Unreadable(String message, boolean ofUnknownSchema) {
            super(message);
            this.ofUnknownSchema = ofUnknownSchema;
        }
    }
}
