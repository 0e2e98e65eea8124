package core

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Attempt names the step execution in which a component works. A component that keeps data outside any
// database, such as a file, needs it to distinguish its own data from others' data (rule C15b).
type Attempt struct {
	// Repository is the identity of the history.
	Repository string
	Instance   JobInstanceID
	// Step is the recorded name of the step: STEP, or STEP:PARTITION.
	Step string
	// ID grows from attempt to attempt of a step.
	ID StepExecutionID
	// Exclusive means that all earlier attempts that this one continues are over: they recorded it
	// after their components were closed, or their process is dead. Their leftovers then belong to this
	// attempt. Otherwise one of them may wake.
	Exclusive bool
	// Left are the last positions of earlier attempts that did not complete: of the step as Attempts
	// knows them, of its writers as chunk.AttemptOf hands them on. An attempt that wakes may still use
	// the files they name.
	Left []item.Position
	// From are the positions of the step's writers from which this attempt continues, as
	// chunk.AttemptOf hands them on: a writer needs the files they name.
	From []item.Position
}

// Scope returns a short text that all attempts of one step of one instance share, and no other step: 12
// hexadecimal digits.
func (a Attempt) Scope() string {
	sum := sha256.Sum256([]byte(a.Repository + "\x00" + strconv.FormatInt(int64(a.Instance), 10) + "\x00" + a.Step))
	return hex.EncodeToString(sum[:6])
}

// LeftBehind is the data outside any database that an incomplete step left, according to its last
// position: part of a file, for example.
type LeftBehind struct {
	Attempt
	Position item.Position
}
