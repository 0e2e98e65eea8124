package bench;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.sql.Date;
import java.time.LocalDate;

import org.springframework.batch.infrastructure.item.database.JdbcBatchItemWriter;
import org.springframework.batch.infrastructure.item.database.builder.JdbcBatchItemWriterBuilder;
import org.springframework.batch.infrastructure.item.file.FlatFileItemReader;
import org.springframework.batch.infrastructure.item.file.builder.FlatFileItemReaderBuilder;
import org.springframework.core.io.FileSystemResource;

/** Sale is a row of the data. */
record Sale(long id, long account, String name, String city, LocalDate day, double amount) {
	static final String HEADER = "id,account,name,city,day,amount";
	private static final int BUFFER = 64 << 10;

	/** The data has no quotes. */
	static Sale of(String line) {
		var fields = line.split(",");
		return new Sale(Long.parseLong(fields[0]), Long.parseLong(fields[1]), fields[2], fields[3], LocalDate.parse(fields[4]), Double.parseDouble(fields[5]));
	}

	String line() {
		return id + "," + account + "," + name + "," + city + "," + day + "," + amount;
	}

	static FlatFileItemReader<Sale> reader(String file) {
		return new FlatFileItemReaderBuilder<Sale>()
			.name("sales")
			.resource(new FileSystemResource(file))
			.bufferedReaderFactory((resource, encoding) -> new BufferedReader(new InputStreamReader(resource.getInputStream(), encoding), BUFFER))
			.linesToSkip(1)
			.lineMapper((line, number) -> Sale.of(line))
			.build();
	}

	static JdbcBatchItemWriter<Sale> writer(Batch batch) {
		var writer = new JdbcBatchItemWriterBuilder<Sale>()
			.dataSource(batch.source)
			.sql("INSERT INTO sale (" + HEADER + ") VALUES (?, ?, ?, ?, ?, ?)")
			.itemPreparedStatementSetter((sale, statement) -> {
				statement.setLong(1, sale.id());
				statement.setLong(2, sale.account());
				statement.setString(3, sale.name());
				statement.setString(4, sale.city());
				statement.setDate(5, Date.valueOf(sale.day()));
				statement.setDouble(6, sale.amount());
			})
			.build();
		writer.afterPropertiesSet();
		return writer;
	}
}
