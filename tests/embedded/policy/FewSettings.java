import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** Refuses every setting of a topic but those that Amazon MSK Serverless documents as settable. */
public final class FewSettings implements CreateTopicPolicy, AlterConfigPolicy {
    private static final Set<String> SETTABLE = Set.of(
            "cleanup.policy",
            "compression.type",
            "max.message.bytes",
            "message.timestamp.difference.max.ms",
            "message.timestamp.type",
            "retention.bytes",
            "retention.ms");

    @Override
    public void validate(CreateTopicPolicy.RequestMetadata request) {
        refuseOthers(request.configs());
    }

    @Override
    public void validate(AlterConfigPolicy.RequestMetadata request) {
        refuseOthers(request.configs());
    }

    private static void refuseOthers(Map<String, String> settings) {
        Set<String> others = new TreeSet<>(settings.keySet());
        others.removeAll(SETTABLE);
        if (!others.isEmpty()) {
            throw new PolicyViolationException("not configurable: " + others);
        }
    }

    @Override
    public void configure(Map<String, ?> settings) {}

    @Override
    public void close() {}
}
