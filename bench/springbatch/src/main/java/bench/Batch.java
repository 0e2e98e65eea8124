package bench;

import java.net.URI;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;

import javax.sql.DataSource;

import org.springframework.batch.core.configuration.support.MapJobRegistry;
import org.springframework.batch.core.job.Job;
import org.springframework.batch.core.job.JobExecution;
import org.springframework.batch.core.job.builder.JobBuilder;
import org.springframework.batch.core.job.parameters.JobParameters;
import org.springframework.batch.core.job.parameters.JobParametersBuilder;
import org.springframework.batch.core.launch.JobOperator;
import org.springframework.batch.core.launch.support.JobOperatorFactoryBean;
import org.springframework.batch.core.repository.JobRepository;
import org.springframework.batch.core.repository.support.JdbcJobRepositoryFactoryBean;
import org.springframework.batch.core.step.Step;
import org.springframework.context.support.StaticApplicationContext;
import org.springframework.core.io.ClassPathResource;
import org.springframework.core.task.SyncTaskExecutor;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.init.ScriptUtils;
import org.springframework.jdbc.support.JdbcTransactionManager;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;

/** Batch is Spring Batch with its JobRepository in the database of the data. */
final class Batch implements AutoCloseable {
	private static final int CONNECTIONS = 4;

	final HikariDataSource source;
	final JdbcTransactionManager transactions;
	final JobRepository repository;
	final JobOperator operator;
	final JdbcTemplate sql;
	private final MapJobRegistry jobs = new MapJobRegistry();

	/** The URL is that of the driver: postgres://USER:PASSWORD@HOST:PORT/DATABASE?... */
	Batch(String url) throws Exception {
		source = open(URI.create(url));
		sql = new JdbcTemplate(source);
		transactions = new JdbcTransactionManager(source);
		if (!hasTables(source)) {
			try (var connection = source.getConnection()) {
				ScriptUtils.executeSqlScript(connection, new ClassPathResource("org/springframework/batch/core/schema-postgresql.sql"));
			}
		}
		var repositories = new JdbcJobRepositoryFactoryBean();
		repositories.setDataSource(source);
		repositories.setTransactionManager(transactions);
		repositories.afterPropertiesSet();
		repository = repositories.getObject();
		var context = new StaticApplicationContext();
		context.refresh();
		var operators = new JobOperatorFactoryBean();
		operators.setApplicationContext(context);
		operators.setJobRepository(repository);
		operators.setJobRegistry(jobs);
		operators.setTransactionManager(transactions);
		operators.setTaskExecutor(new SyncTaskExecutor());
		operators.afterPropertiesSet();
		operator = operators.getObject();
	}

	private static HikariDataSource open(URI url) {
		var user = url.getRawUserInfo().split(":", 2);
		var config = new HikariConfig();
		config.setJdbcUrl("jdbc:postgresql://" + url.getHost() + ":" + url.getPort() + url.getPath() + "?sslmode=disable&reWriteBatchedInserts=true");
		config.setUsername(URLDecoder.decode(user[0], StandardCharsets.UTF_8));
		if (user.length > 1) {
			config.setPassword(URLDecoder.decode(user[1], StandardCharsets.UTF_8));
		}
		config.setMaximumPoolSize(CONNECTIONS);
		return new HikariDataSource(config);
	}

	private static boolean hasTables(DataSource source) throws Exception {
		try (var connection = source.getConnection();
				var tables = connection.getMetaData().getTables(null, "public", "batch_job_instance", null)) {
			return tables.next();
		}
	}

	/** Makes a job of one step. */
	Job job(String name, Step step) throws Exception {
		var job = new JobBuilder(name, repository).start(step).build();
		jobs.register(job);
		return job;
	}

	/** Returns the parameters of the instance with this number. */
	static JobParameters instance(long number) {
		return new JobParametersBuilder().addLong("instance", number).toJobParameters();
	}

	/**
	 * Runs an instance. Where an earlier process has left it, this is what an operator does: recover
	 * an execution whose process was killed, and restart it.
	 */
	JobExecution run(Job job, long number) throws Exception {
		var last = repository.getLastJobExecution(job.getName(), instance(number));
		if (last == null) {
			return operator.start(job, instance(number));
		}
		if (last.isRunning()) {
			last = operator.recover(last);
		}
		return operator.restart(last);
	}

	/** Reports whether the repository knows of an execution of the instance. */
	boolean isKnown(Job job, long number) {
		return repository.getLastJobExecution(job.getName(), instance(number)) != null;
	}

	long count(String query) {
		Long n = sql.queryForObject(query, Long.class);
		return n == null ? 0 : n;
	}

	@Override
	public void close() {
		source.close();
	}
}
