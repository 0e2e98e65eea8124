// Package json reads and writes JSON files: the components `json`, an array, and `jsonl`, one value per
// line. A file of any size takes the memory of one value.
//
// It imports core, core/registry, internal/filestream and internal/jsonfile.
package json

import (
	"slices"

	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Components returns the readers and writers `json` and `jsonl`.
func Components() []registry.Component { return slices.Concat(arrayComponents(), linesComponents()) }
