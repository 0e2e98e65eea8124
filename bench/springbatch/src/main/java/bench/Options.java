package bench;

import java.util.HashMap;
import java.util.Map;

/** Options are arguments of the form name=value. */
final class Options {
	private final Map<String, String> values = new HashMap<>();

	Options(String[] args) {
		for (var arg : args) {
			var at = arg.indexOf('=');
			if (at < 0) {
				throw new IllegalArgumentException("not name=value: " + arg);
			}
			values.put(arg.substring(0, at), arg.substring(at + 1));
		}
	}

	String text(String name) {
		var value = values.get(name);
		if (value == null) {
			throw new IllegalArgumentException(name + " is lacking");
		}
		return value;
	}

	int number(String name) {
		return Integer.parseInt(text(name));
	}
}
