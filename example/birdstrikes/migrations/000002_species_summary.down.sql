drop table species_summary;
