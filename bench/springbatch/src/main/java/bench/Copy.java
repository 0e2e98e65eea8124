package bench;

import org.springframework.batch.core.step.builder.ChunkOrientedStepBuilder;
import org.springframework.batch.infrastructure.item.file.builder.FlatFileItemWriterBuilder;
import org.springframework.core.io.FileSystemResource;

/** Copy is workload w3b: a csv file into another one. */
final class Copy {
	private Copy() {
	}

	/** Takes url, input, output and chunk, and what Rounds takes. */
	static void run(Options options) throws Exception {
		try (var batch = new Batch(options.text("url"))) {
			var rounds = new Rounds(batch, options);
			var writer = new FlatFileItemWriterBuilder<Sale>()
				.name("copies")
				.resource(new FileSystemResource(options.text("output")))
				.lineSeparator("\n")
				.headerCallback(out -> out.write(Sale.HEADER))
				.lineAggregator(Sale::line)
				.build();
			var step = new ChunkOrientedStepBuilder<Sale, Sale>("copy", batch.repository, options.number("chunk"))
				.transactionManager(batch.transactions)
				.reader(Sale.reader(options.text("input")))
				.writer(writer)
				.listener(rounds.<Sale, Sale>killer())
				.build();
			rounds.run(batch.job("copy", step), () -> { });
		}
	}
}
