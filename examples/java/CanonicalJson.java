import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.avro.JsonProperties;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericRecord;

/** The one text form of a decision over which its digest is computed: rules C1 to C6. */
final class CanonicalJson {
    /** Order by code points, as in UTF-8. Java's strings sort by UTF-16 code units. */
    private static final Comparator<String> BY_CODE_POINT = (left, right) ->
            Arrays.compareUnsigned(left.getBytes(StandardCharsets.UTF_8), right.getBytes(StandardCharsets.UTF_8));

    private static final Set<String> NAMED_BESIDE_EVENTS = Set.of("Slot", "Bundle", "Namespace");
    private static final Map<String, Set<String>> LATER_FIELDS =
            Map.of(
                    "Bundle",
                            Set.of(
                                    "state", "next_owner", "former_owner", "owner_epoch", "state_epoch", "version",
                                    "is_forced", "children", "split_algorithm", "parent"),
                    "ClusterPolicy",
                            Set.of(
                                    "intent_rights", "forget_nodes_after_ms", "bundle_moves_in_flight",
                                    "handoff_limit_ms", "copy_limit_ms"),
                    "Namespace", Set.of("is_ending"),
                    "Node", Set.of("process_id", "hands_off", "replaced_epoch"),
                    "Slot", Set.of("next_leader", "release_epoch"),
                    "TermOpened", Set.of("observed_from", "cluster"));

    private CanonicalJson() {}

    /** A record as maps, lists and scalars. Events and some other records have their type as a member. */
    static Map<String, Object> treeOf(GenericRecord record, boolean named) {
        Schema schema = record.getSchema();
        Map<String, Object> tree = new TreeMap<>(BY_CODE_POINT);
        for (Schema.Field field : schema.getFields()) {
            tree.put(field.name(), treeOf(record.get(field.pos()), field.name().equals("events")));
        }
        for (String later : LATER_FIELDS.getOrDefault(schema.getName(), Set.of())) {
            Schema.Field field = schema.getField(later);
            if (field != null && isDefault(tree.get(later), field.defaultVal())) {
                tree.remove(later);
            }
        }
        if (named || NAMED_BESIDE_EVENTS.contains(schema.getName())) {
            tree.put("type", schema.getName());
        }
        return tree;
    }

    private static boolean isDefault(Object value, Object defaultValue) {
        return value == null ? defaultValue == JsonProperties.NULL_VALUE : value.equals(defaultValue);
    }

    private static Object treeOf(Object value, boolean named) {
        if (value instanceof GenericRecord) {
            return treeOf((GenericRecord) value, named);
        }
        if (value instanceof List) {
            List<Object> list = new ArrayList<>();
            for (Object each : (List<?>) value) {
                list.add(treeOf(each, named));
            }
            return list;
        }
        if (value instanceof Map) {
            Map<String, Object> map = new TreeMap<>(BY_CODE_POINT);
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                map.put(entry.getKey().toString(), treeOf(entry.getValue(), false));
            }
            return map;
        }
        return value instanceof CharSequence ? value.toString() : value;
    }

    /** The text of such a tree. */
    static String textOf(Object tree) {
        StringBuilder text = new StringBuilder();
        write(tree, text);
        return text.toString();
    }

    static String digestOf(String canonical) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(canonical.getBytes(StandardCharsets.UTF_8));
            StringBuilder text = new StringBuilder();
            for (byte each : digest) {
                text.append(String.format("%02x", each));
            }
            return text.toString();
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }

    private static void write(Object value, StringBuilder text) {
        String separator = "";
        if (value instanceof Map) {
            text.append('{');
            for (Map.Entry<?, ?> entry : ((Map<?, ?>) value).entrySet()) {
                text.append(separator);
                writeString(entry.getKey().toString(), text);
                text.append(':');
                write(entry.getValue(), text);
                separator = ",";
            }
            text.append('}');
        } else if (value instanceof List) {
            text.append('[');
            for (Object each : (List<?>) value) {
                text.append(separator);
                write(each, text);
                separator = ",";
            }
            text.append(']');
        } else if (value instanceof String) {
            writeString((String) value, text);
        } else {
            text.append(value instanceof Double ? doubleText((Double) value) : String.valueOf(value));
        }
    }

    private static void writeString(String value, StringBuilder text) {
        text.append('"');
        for (int index = 0; index < value.length(); index++) {
            char each = value.charAt(index);
            int escape = "\"\\\b\t\n\f\r".indexOf(each);
            if (escape >= 0) {
                text.append('\\').append("\"\\btnfr".charAt(escape));
            } else if (each < 0x20) {
                text.append(String.format("\\u%04x", (int) each));
            } else {
                text.append(each);
            }
        }
        text.append('"');
    }

    /** For numbers from 0 (excluded) to 1: decisions contain no other doubles. */
    private static String doubleText(double value) {
        BigDecimal decimal = new BigDecimal(Double.toString(value)).stripTrailingZeros();
        String digits = decimal.unscaledValue().toString();
        int exponent = digits.length() - 1 - decimal.scale();
        if (exponent < -4) {
            String fraction = digits.length() == 1 ? "" : "." + digits.substring(1);
            return digits.charAt(0) + fraction + String.format("e-%02d", -exponent);
        }
        String plain = decimal.toPlainString();
        return plain.contains(".") ? plain : plain + ".0";
    }
}
