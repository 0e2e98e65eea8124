package cli

import (
	"fmt"
	"strconv"

	"github.com/surfin-batch/surfin/pkg/batch/core"
)

// canonicalWord is name=value, not quoted.
func canonicalWord(p core.Parameter) string {
	text, err := p.Canonical()
	if err != nil {
		text = fmt.Sprint(p.Value) // cannot be: NewParameters has checked it
	}
	return p.Name + "=" + text
}

func idText(id core.JobExecutionID) string { return strconv.FormatInt(int64(id), 10) }
