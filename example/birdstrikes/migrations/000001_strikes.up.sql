-- One row per line of the file. The same SQL for SQLite and PostgreSQL.
create table strikes (
	line     bigint  primary key,
	date     date    not null,
	airport  text    not null,
	state    text    not null,
	operator text    not null,
	aircraft text    not null,
	phase    text    not null,
	species  text    not null,
	damaged  boolean not null,
	cost     bigint  not null, -- US dollars
	speed    bigint            -- knots; null: not reported
);
create index strikes_species on strikes (species);
