drop table strikes;
