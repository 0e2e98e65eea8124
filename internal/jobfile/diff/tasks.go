package diff

import (
	"fmt"

	"github.com/surfin-batch/surfin/internal/jobfile/model"
	"github.com/surfin-batch/surfin/internal/yamlfile"
)

// taskChanges compares the inputs from which a step has made its tasks.
func (c *comparison) taskChanges(old, now *model.Step) []Change {
	const did = "has submitted its tasks"
	changes := c.useChanges(old.Name, did, old.Reader, now.Reader, model.AnyKey)
	refuse := func(at *yamlfile.Node, what string) {
		changes = append(changes, Change{Step: old.Name, What: did + what, Refused: true, Place: c.place(at)})
	}
	was, is := old.Tasks.Model, now.Tasks.Model
	if was.Handler != is.Handler {
		refuse(is.Node.Find("handler"), fmt.Sprintf(" for the handler %s, and it is %s now", was.Handler, is.Handler))
	}
	if (old.Reader == nil || now.Reader == nil) && nodeText(was.Items.Node) != nodeText(is.Items.Node) {
		refuse(is.Node.Find("items"), " with other items")
	}
	if was.Key != is.Key || was.After != is.After {
		refuse(is.Node, " in another order (key, after)")
	}
	if was.Budget.Limits() != is.Budget.Limits() {
		refuse(is.Node.Find("budget"), " with another budget")
	}
	for i := range changes {
		changes[i].Kept = "the tasks that are submitted"
	}
	return changes
}
