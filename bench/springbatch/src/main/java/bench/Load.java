package bench;

import org.springframework.batch.core.step.builder.ChunkOrientedStepBuilder;

/** Load is workload w1: a csv file into the table sale. */
final class Load {
	private Load() {
	}

	/** Takes url, input and chunk, and what Rounds takes. */
	static void run(Options options) throws Exception {
		try (var batch = new Batch(options.text("url"))) {
			var rounds = new Rounds(batch, options);
			var step = new ChunkOrientedStepBuilder<Sale, Sale>("load", batch.repository, options.number("chunk"))
				.transactionManager(batch.transactions)
				.reader(Sale.reader(options.text("input")))
				.writer(Sale.writer(batch))
				.listener(rounds.<Sale, Sale>killer())
				.build();
			rounds.run(batch.job("load", step), () -> batch.sql.execute("TRUNCATE sale"));
		}
	}
}
