package registry

// Refiller is implemented by the configs of writers that may remove what their target holds
// and fill it anew, such as the rows of a table (rule TW4). Two writers of such a target,
// and partitions, are refused: each would remove what the others wrote.
type Refiller interface {
	// Refills names the way, such as truncate; empty: what is there stays.
	Refills() string
}
