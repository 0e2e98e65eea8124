package bench;

import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;

import org.springframework.batch.core.job.JobExecution;
import org.springframework.batch.core.listener.StepExecutionListener;
import org.springframework.batch.core.step.Step;
import org.springframework.batch.core.step.StepExecution;
import org.springframework.batch.core.step.builder.ChunkOrientedStepBuilder;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.infrastructure.item.ItemWriter;
import org.springframework.batch.infrastructure.item.database.builder.JdbcBatchItemWriterBuilder;
import org.springframework.batch.infrastructure.item.file.FlatFileItemReader;
import org.springframework.batch.infrastructure.item.file.builder.FlatFileItemReaderBuilder;
import org.springframework.core.io.FileSystemResource;
import org.springframework.dao.DataIntegrityViolationException;
import org.springframework.dao.TransientDataAccessException;

/**
 * Lose loads rows of which one breaks a constraint, or is refused once with SQLSTATE 40001, with
 * stock components. The first process can be killed or stopped while rows are written one by one;
 * the next one recovers and restarts what it has left.
 */
final class Lose {
	private static final int CHUNK = 10;
	private static final int RETRIES = 3;
	private static final int SKIPS = 5;

	private final Batch batch;
	private final Options options;
	private final AtomicLong execution = new AtomicLong();

	private Lose(Batch batch, Options options) {
		this.batch = batch;
		this.options = options;
	}

	/** Row is a line of the input. */
	record Row(long id, String name) {
		static Row of(String line) {
			var fields = line.split(",");
			return new Row(Long.parseLong(fields[0]), fields[1]);
		}
	}

	/**
	 * Takes url, input, builder (chunk or classic), disturb (kill, stop or nothing) and at: the row
	 * at which it comes, when that is written alone.
	 */
	static void run(Options options) throws Exception {
		try (var batch = new Batch(options.text("url"))) {
			new Lose(batch, options).run();
		}
	}

	private void run() throws Exception {
		var job = batch.job("lose", options.text("builder").equals("classic") ? classic() : chunkOriented());
		JobExecution end = batch.run(job, 1);
		long skipped = batch.count("SELECT coalesce(sum(write_skip_count), 0) FROM batch_step_execution");
		var causes = new StringBuilder();
		for (Throwable cause : end.getAllFailureExceptions()) {
			for (; cause != null; cause = cause.getCause()) {
				if (cause instanceof java.sql.SQLException failed) {
					causes.append(failed.getSQLState()).append(' ');
				}
				for (var other : cause.getSuppressed()) {
					if (other.getCause() instanceof java.sql.SQLException failed) {
						causes.append(failed.getSQLState()).append(' ');
					}
				}
			}
		}
		System.out.println(String.format(Locale.ROOT, "{\"status\": \"%s\", \"skipped\": %d, \"cause\": \"%s\"}", end.getStatus(), skipped, causes.toString().trim()));
	}

	private Step chunkOriented() {
		return new ChunkOrientedStepBuilder<Row, Row>("load", batch.repository, CHUNK)
			.transactionManager(batch.transactions)
			.reader(reader())
			.writer(writer())
			.listener(remember())
			.faultTolerant()
			.retry(TransientDataAccessException.class)
			.retryLimit(RETRIES)
			.skip(DataIntegrityViolationException.class)
			.skipLimit(SKIPS)
			.build();
	}

	@SuppressWarnings("removal") // it is what existing jobs use
	private Step classic() {
		return new StepBuilder("load", batch.repository)
			.<Row, Row>chunk(CHUNK, batch.transactions)
			.reader(reader())
			.writer(writer())
			.faultTolerant()
			.retry(TransientDataAccessException.class)
			.retryLimit(RETRIES)
			.skip(DataIntegrityViolationException.class)
			.skipLimit(SKIPS)
			.listener(remember())
			.build();
	}

	private FlatFileItemReader<Row> reader() {
		return new FlatFileItemReaderBuilder<Row>()
			.name("rows")
			.resource(new FileSystemResource(options.text("input")))
			.linesToSkip(1)
			.lineMapper((line, number) -> Row.of(line))
			.build();
	}

	/** Returns the stock writer behind the disturbance. */
	private ItemWriter<Row> writer() {
		var writer = new JdbcBatchItemWriterBuilder<Row>()
			.dataSource(batch.source)
			.sql("INSERT INTO entry (id, name) VALUES (?, ?)")
			.itemPreparedStatementSetter((row, statement) -> {
				statement.setLong(1, row.id());
				statement.setString(2, row.name());
			})
			.build();
		writer.afterPropertiesSet();
		return rows -> {
			if (rows.size() == 1 && rows.getItems().get(0).id() == options.number("at")) {
				disturb();
			}
			writer.write(rows);
		};
	}

	private void disturb() throws Exception {
		switch (options.text("disturb")) {
			case "kill" -> Rounds.killNow();
			case "stop" -> {
				var operator = new Thread(this::stop);
				operator.start();
				operator.join();
			}
			default -> { }
		}
	}

	/** Stops the execution as an operator does, from outside of its thread and its transaction. */
	private void stop() {
		try {
			batch.operator.stop(batch.repository.getJobExecution(execution.get()));
		} catch (Exception e) {
			throw new IllegalStateException(e);
		}
	}

	private StepExecutionListener remember() {
		return new StepExecutionListener() {
			@Override
			public void beforeStep(StepExecution step) {
				execution.set(step.getJobExecution().getId());
			}
		};
	}
}
