package registry

// Connector is implemented by the configuration of a component that takes connections in addition to
// the step's transaction. A step that needs more of them than its pool has is refused when the job is
// compiled (rule O4).
type Connector interface {
	Connections() []Connection
}

// Connection is one connection of a component.
type Connection struct {
	// Database is its name; empty means the job's, or with OfStep the database of the step's
	// transactions.
	Database string
	OfStep   bool
	Use      Use
}

// Use is how long a component holds a connection.
type Use int

// The uses.
const (
	// Kept is a connection held from Open to Close.
	Kept Use = iota
	// Within is a connection taken for a moment in the step's transaction, in addition to that
	// transaction's.
	Within
	// Between is a connection taken for a moment while the step has no transaction of its own.
	Between
)
