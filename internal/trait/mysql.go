package trait

// OnMySQL configs are of components that work on MySQL and MariaDB (rule MY1).
type OnMySQL interface{ WorksOnMySQL() }
