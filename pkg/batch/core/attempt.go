package core

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"

	"github.com/surfin-batch/surfin/pkg/batch/core/item"
)

// Attempt names a component's step execution, to distinguish its data outside databases from others' (rule
// C15b).
type Attempt struct {
	Repository string
	Instance   JobInstanceID
	// Step is STEP, or STEP:PARTITION.
	Step string
	// ID grows by attempt.
	ID StepExecutionID
	// Manager is the step execution that planned it, if it is a partition.
	Manager StepExecutionID
	// Exclusive: the earlier attempts it continues are over (recorded after closing, or dead), and their
	// leftovers are its own. Otherwise one may wake.
	Exclusive bool
	// Left are last positions of earlier incomplete attempts, of the writers by chunk.AttemptOf. A waking
	// attempt may still use their files.
	Left []item.Position
	// From are the writers' positions it continues from, by chunk.AttemptOf: their files are needed.
	From []item.Position
}

// Scope is shared by all attempts of one step of one instance only: 12 hexadecimal digits.
func (a Attempt) Scope() string {
	sum := sha256.Sum256([]byte(a.Repository + "\x00" + strconv.FormatInt(int64(a.Instance), 10) + "\x00" + a.Step))
	return hex.EncodeToString(sum[:6])
}
