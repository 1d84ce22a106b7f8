import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.zip.CRC32;
import java.util.zip.CRC32C;

/** From a key to its slot and to its place among the bundles of a namespace: rules H1 to H5 and B1. */
final class KeyHashes {
    /** The last hash of a namespace, which the last bundle holds although it is its upper bound (B2). */
    static final long LAST_BUNDLE_HASH = 0xffffffffL;

    private KeyHashes() {}

    /**
     * The slot of a key: 0 to slotCount - 1.
     *
     * @param slotCount a power of two, from the table's settings
     * @throws IllegalArgumentException the hash function is none that this reader knows
     */
    static long slotOf(String key, String hashFunction, long slotCount) {
        switch (hashFunction) {
            case "crc32c":
                return Math.abs((long) crc32c(key)) & (slotCount - 1);
            case "md5":
                return Math.abs((long) md5Prefix(key)) % slotCount;
            default:
                throw new IllegalArgumentException("unknown hash function " + hashFunction);
        }
    }

    /** The checksum as a signed number. Its absolute value is taken as a long: that of -2^31 does not fit an int. */
    static int crc32c(String key) {
        CRC32C checksum = new CRC32C();
        checksum.update(key.getBytes(StandardCharsets.UTF_8));
        return (int) checksum.getValue();
    }

    /** The first four bytes of the MD5, little-endian and signed. */
    static int md5Prefix(String key) {
        try {
            byte[] digest = MessageDigest.getInstance("MD5").digest(key.getBytes(StandardCharsets.UTF_8));
            return ByteBuffer.wrap(digest).order(ByteOrder.LITTLE_ENDIAN).getInt();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    /** A key's place in the hash space of its namespace: 0 to 2^32 - 1. */
    static long bundleHash(String key) {
        CRC32 checksum = new CRC32();
        checksum.update(key.getBytes(StandardCharsets.UTF_8));
        return checksum.getValue();
    }
}
