package bench;

/**
 * Main is what bench/driver runs: one process with one piece of work, whose result it prints as a
 * line of JSON. Its arguments are name=value; work says which of the following ones it needs.
 */
public final class Main {
	private Main() {
	}

	public static void main(String[] args) throws Exception {
		var options = new Options(args);
		switch (options.text("work")) {
			case "load" -> Load.run(options);
			case "load-parts" -> Parts.run(options);
			case "copy" -> Copy.run(options);
			case "tasklet" -> One.run(options);
			case "lose" -> Lose.run(options);
			default -> throw new IllegalArgumentException("there is no work " + options.text("work"));
		}
	}
}
