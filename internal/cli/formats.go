package cli

import (
	"errors"
	"slices"

	"github.com/surfin-batch/surfin/internal/humanize"
)

const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
)

type formatFlag struct {
	value   *string
	allowed []string
}

func (f *formatFlag) String() string {
	if f.value == nil { // of cobra's own
		return ""
	}
	return *f.value
}
func (f *formatFlag) Type() string { return "FORMAT" }
func (f *formatFlag) Set(text string) error {
	if !slices.Contains(f.allowed, text) {
		return errors.New("allowed: " + humanize.Join(f.allowed))
	}
	*f.value = text
	return nil
}
