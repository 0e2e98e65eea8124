package operator

// Target is where a writer writes to.
type Target struct {
	Step   string `json:"step"`
	Writer string `json:"writer"` // the component, such as table or csv
	// Target is the value of the main field of the writer's config, after everything in
	// it was bound: a table, a file.
	Target string `json:"target"`
	// Database is its name, where the writer has one.
	Database string `json:"database,omitempty"`
}
