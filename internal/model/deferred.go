package model

import (
	"github.com/surfin-batch/surfin/internal/ports"
)

// DeferredEnd is a step's end that is recorded after the group's transaction: inside it the record
// would claim more than is committed.
type DeferredEnd struct {
	Ref    ports.StepRef
	Name   string
	Change ports.StepChange
}
