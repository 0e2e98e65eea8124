package ports

// Repository has the ports of the history. A decorator replaces some of them.
type Repository struct {
	Launches
	Stops
	Transitions
	PartitionPlans
	Parks
	Assignments
	PlacedWork
	Operations
	CheckpointStore
	Explorer
	BulkExplorer
	Spans
	Parts
	Searches
	Skips
	Attempts
	Journal
	Requests
	Logs
	Series
}
