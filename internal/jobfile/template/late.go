package template

// LateValue is a text with compiled ${...}.
type LateValue struct {
	*Template
	// AtStep means that it needs more than the values known at launch.
	AtStep bool
}
