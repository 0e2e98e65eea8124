package registry

// Connector is implemented by the configuration of a component that takes connections beside that of the step's
// transaction. A step that needs more of them than its pool has is refused when the job is compiled (rule O4).
type Connector interface {
	Connections() []Connection
}

// Connection is one that a component takes.
type Connection struct {
	// Database is its name; empty: the job's, or with OfStep that of the step's transactions.
	Database string
	OfStep   bool
	Use      Use
}

// Use is how long a component has a connection.
type Use int

// The uses.
const (
	// Kept is a connection that the component has from Open to Close.
	Kept Use = iota
	// Within is one that it takes for a moment in the step's transaction, beside that of the transaction.
	Within
	// Between is one that it takes for a moment while the step has no transaction of its own.
	Between
)
