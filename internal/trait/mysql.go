package trait

// OnMySQL configs are of components that work on MySQL and MariaDB (rule MY1).
type OnMySQL interface {
	// OnMySQL returns a *registry.ConfigError for a key that does not.
	OnMySQL() error
}
