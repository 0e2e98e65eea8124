package trait

// Connector configs take connections in addition to the step's transaction: more than the pool has is refused
// at compilation (rule O4).
type Connector interface {
	Connections() []Connection
}

// Connection is one connection of a component.
type Connection struct {
	// Database is its name; empty means the job's, or with OfStep the step's.
	Database string
	OfStep   bool
	Use      Use
}

// Use is how long a connection is held.
type Use int

// The uses.
const (
	// Kept from Open to Close.
	Kept Use = iota
	// Within: for a moment, in addition to the step's transaction.
	Within
	// Between: for a moment without one.
	Between
)
