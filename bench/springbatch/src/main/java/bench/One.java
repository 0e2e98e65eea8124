package bench;

import org.springframework.batch.core.BatchStatus;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.infrastructure.repeat.RepeatStatus;

/** One is the workload start: a job of one tasklet. */
final class One {
	private One() {
	}

	/** Takes url. */
	static void run(Options options) throws Exception {
		try (var batch = new Batch(options.text("url"))) {
			long begin = System.nanoTime();
			var step = new StepBuilder("one", batch.repository)
				.tasklet((contribution, context) -> {
					batch.sql.execute("select 1");
					return RepeatStatus.FINISHED;
				}, batch.transactions)
				.build();
			var execution = batch.run(batch.job("start", step), 1);
			if (execution.getStatus() != BatchStatus.COMPLETED) {
				throw new IllegalStateException("the job is " + execution.getStatus());
			}
			System.out.println("{\"seconds\": " + (System.nanoTime() - begin) / 1e9 + "}");
		}
	}
}
