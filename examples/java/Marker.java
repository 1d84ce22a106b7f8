import org.apache.avro.generic.GenericRecord;

/** An epoch marker, or the values of the marker with which the table in use was shown. */
final class Marker {
    final long term;
    final long epoch;
    final long seq;
    final String logId;
    final long rowCount;
    final String digest;

    Marker(GenericRecord record) {
        this.term = (Long) record.get("term");
        this.epoch = (Long) record.get("epoch");
        this.seq = (Long) record.get("seq");
        this.logId = record.get("log_id").toString();
        this.rowCount = (Long) record.get("row_count");
        this.digest = record.get("digest").toString();
    }

    @Override
    public String toString() {
        return "epoch " + epoch + " (term " + term + ", seq " + seq + ", log " + logId + ", digest " + digest + ")";
    }
}
