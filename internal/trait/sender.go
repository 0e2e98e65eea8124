package trait

// Sender configs send texts to others, such as a webhook.
type Sender interface {
	// SendsRowData: its job.error is the whole message, maybe with row values (rule OP7).
	SendsRowData() bool
}
