package bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

import org.springframework.batch.core.listener.ChunkListener;
import org.springframework.batch.core.partition.Partitioner;
import org.springframework.batch.core.step.Step;
import org.springframework.batch.core.step.StepExecution;
import org.springframework.batch.core.step.builder.ChunkOrientedStepBuilder;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.infrastructure.item.ExecutionContext;
import org.springframework.core.task.SimpleAsyncTaskExecutor;

/** Parts is workload w9: a csv file into the table sale, in parts of as many lines, two at a time. */
final class Parts {
	private static final int THREADS = 2;
	private static final String FROM = "from";
	private static final String TO = "to";

	private Parts() {
	}

	/** Takes url, input, chunk and parts, and what Rounds takes. */
	static void run(Options options) throws Exception {
		try (var batch = new Batch(options.text("url"))) {
			var rounds = new Rounds(batch, options);
			ChunkListener<Sale, Sale> killer = rounds.killer();
			var threads = new SimpleAsyncTaskExecutor("part");
			threads.setConcurrencyLimit(THREADS);
			var step = new StepBuilder("load", batch.repository)
				.partitioner("part", ranges(options.text("input")))
				.step(part(batch, options, killer))
				.gridSize(options.number("parts"))
				.taskExecutor(threads)
				.build();
			rounds.run(batch.job("load-parts", step), "part:%", () -> batch.sql.execute("TRUNCATE sale"));
		}
	}

	/** Counts the lines of the file, and divides them. */
	private static Partitioner ranges(String input) {
		return parts -> {
			long rows = lines(Path.of(input)) - 1;
			Map<String, ExecutionContext> ranges = new HashMap<>();
			for (int i = 0; i < parts; i++) {
				var range = new ExecutionContext();
				range.putInt(FROM, (int) (rows * i / parts));
				range.putInt(TO, (int) (rows * (i + 1) / parts));
				ranges.put("lines" + i, range);
			}
			return ranges;
		};
	}

	private static long lines(Path file) {
		try (var in = Files.newInputStream(file)) {
			var buffer = new byte[64 << 10];
			long lines = 0;
			for (int n = in.read(buffer); n >= 0; n = in.read(buffer)) {
				for (int i = 0; i < n; i++) {
					if (buffer[i] == '\n') {
						lines++;
					}
				}
			}
			return lines;
		} catch (IOException e) {
			throw new IllegalStateException(e);
		}
	}

	/** Returns a step with a reader of its own for each part, as a bean in the scope of the step is. */
	private static Step part(Batch batch, Options options, ChunkListener<Sale, Sale> killer) {
		return new Step() {
			@Override
			public String getName() {
				return "part";
			}

			@Override
			public void execute(StepExecution execution) {
				var range = execution.getExecutionContext();
				var reader = Sale.reader(options.text("input"));
				reader.setCurrentItemCount(range.getInt(FROM));
				reader.setMaxItemCount(range.getInt(TO));
				try {
					new ChunkOrientedStepBuilder<Sale, Sale>(getName(), batch.repository, options.number("chunk"))
						.transactionManager(batch.transactions)
						.reader(reader)
						.writer(Sale.writer(batch))
						.listener(killer)
						.build()
						.execute(execution);
				} catch (Exception e) {
					throw new IllegalStateException(e);
				}
			}
		};
	}
}
