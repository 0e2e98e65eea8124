create table species_summary (
	species    text   primary key,
	strikes    bigint not null,
	damaging   bigint not null,
	cost       bigint not null, -- US dollars
	mean_speed bigint           -- knots; null: never reported
);
