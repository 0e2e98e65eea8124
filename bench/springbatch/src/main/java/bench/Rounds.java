package bench;

import java.lang.management.ManagementFactory;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

import org.springframework.batch.core.BatchStatus;
import org.springframework.batch.core.job.Job;
import org.springframework.batch.core.listener.ChunkListener;
import org.springframework.batch.infrastructure.item.Chunk;

/** Rounds runs a job as the driver asks: some times to warm up, and once to be measured. */
final class Rounds {
	/** MEASURED is the number of the instance that is measured; those before it warm up. */
	private static final long MEASURED = 100;

	private final Batch batch;
	private final Options options;

	/** Takes the options warm (jobs before the measured one), rows and kill_at. */
	Rounds(Batch batch, Options options) {
		this.batch = batch;
		this.options = options;
	}

	/** Runs the job, with clear after each one that is not measured, and prints the result. */
	void run(Job job, Runnable clear) throws Exception {
		run(job, "%", clear);
	}

	/** Does the same with a job of which only the steps with names like this one count their rows. */
	void run(Job job, String steps, Runnable clear) throws Exception {
		boolean restarted = batch.isKnown(job, MEASURED);
		for (int i = 0; i < options.number("warm") && !restarted; i++) {
			complete(job, i);
			clear.run();
			batch.sql.execute("CHECKPOINT");
		}
		var cpu = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
		System.out.println("{\"begins\": true}");
		long spent = cpu.getProcessCpuTime();
		long begin = System.nanoTime();
		complete(job, MEASURED);
		double seconds = (System.nanoTime() - begin) / 1e9;
		double used = (cpu.getProcessCpuTime() - spent) / 1e9;
		checkCounters(steps);
		System.out.println(String.format(Locale.ROOT, "{\"seconds\": %.6f, \"client_cpu\": %.6f}", seconds, used));
	}

	private void complete(Job job, long instance) throws Exception {
		var execution = batch.run(job, instance);
		if (execution.getStatus() != BatchStatus.COMPLETED) {
			throw new IllegalStateException("the job is " + execution.getStatus() + ": " + execution.getAllFailureExceptions());
		}
	}

	/** Checks that all attempts of the measured instance have counted each row once. */
	private void checkCounters(String steps) {
		var counted = " FROM batch_step_execution s JOIN batch_job_execution_params p USING (job_execution_id)"
			+ " WHERE p.parameter_name = 'instance' AND p.parameter_value = '" + MEASURED + "' AND s.step_name LIKE '" + steps + "'";
		for (var counter : new String[] { "read_count", "write_count" }) {
			long n = batch.count("SELECT coalesce(sum(s." + counter + "), 0)" + counted);
			if (n != options.number("rows")) {
				throw new IllegalStateException(counter + " of all attempts is " + n + ", and there are " + options.number("rows") + " rows");
			}
		}
	}

	/** Returns a listener that kills this process soon after kill_at rows; none where that is 0. */
	<I, O> ChunkListener<I, O> killer() {
		long at = options.number("kill_at");
		return new ChunkListener<>() {
			private final AtomicLong rows = new AtomicLong();

			@Override
			public void afterChunk(Chunk<O> chunk) {
				long now = rows.addAndGet(chunk.size());
				if (at > 0 && now >= at && now - chunk.size() < at) {
					new Thread(Rounds::killLater).start();
				}
			}
		};
	}

	private static void killLater() {
		try {
			Thread.sleep(new Random().nextInt(20));
			killNow();
		} catch (Exception e) {
			throw new IllegalStateException(e);
		}
	}

	/** Ends this process as kill -9 does. */
	static void killNow() throws Exception {
		new ProcessBuilder("sh", "-c", "kill -9 " + ProcessHandle.current().pid()).start().waitFor();
	}
}
