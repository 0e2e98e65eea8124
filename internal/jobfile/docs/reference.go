package docs

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/surfin-batch/surfin/internal/contrib"
	"github.com/surfin-batch/surfin/internal/jobfile/language"
	"github.com/surfin-batch/surfin/internal/partcount"
	"github.com/surfin-batch/surfin/internal/yamlfile"
	"github.com/surfin-batch/surfin/pkg/batch/core/config"
	"github.com/surfin-batch/surfin/pkg/batch/core/item"
	"github.com/surfin-batch/surfin/pkg/batch/core/registry"
)

// Reference returns the Markdown pages by file name, the same for the same registry.
func Reference(reg *registry.Registry) map[string][]byte {
	pages := map[string][]byte{"job-file.md": jobFilePage(reg), "components.md": indexPage(reg)}
	for _, c := range reg.Components() {
		var p page
		p.component(c)
		pages[pageName(c)] = p.text.Bytes()
	}
	return pages
}

// Describe returns the pages of all components of that name; for an unknown one
// the error names the nearest.
func Describe(reg *registry.Registry, name string) ([]byte, error) {
	var p page
	var names []string
	for _, c := range reg.Components() {
		if !slices.Contains(names, c.Name) {
			names = append(names, c.Name)
		}
		if c.Name != name {
			continue
		}
		if p.text.Len() > 0 {
			p.printf("\n")
		}
		p.component(c)
	}
	for _, c := range contrib.Missing(reg) {
		if c.Name == name {
			p.printf("# %s `%s`\n\n%s\n\nNote: %s: %s.\n", c.Kind, c.Name, c.Summary, c.Lacks(), contrib.Cure(c.Family))
		}
	}
	if p.text.Len() == 0 {
		slices.Sort(names)
		return nil, fmt.Errorf("there is no component %s; %s", name, yamlfile.Suggest(name, names))
	}
	return p.text.Bytes(), nil
}

func pageName(c registry.Component) string { return string(c.Kind) + "-" + c.Name + ".md" }

type page struct{ text bytes.Buffer }

func (p *page) printf(format string, args ...any) { fmt.Fprintf(&p.text, format, args...) }

const generated = "<!-- Generated from the Go structs that the loader uses; do not edit. -->\n\n"

func indexPage(reg *registry.Registry) []byte {
	var p page
	p.printf("%s# Components\n", generated)
	kind := registry.Kind("")
	for _, c := range reg.Components() {
		if c.Kind != kind {
			kind = c.Kind
			word := string(kind)
			p.printf("\n## %ss\n\n| name | what it does |\n|---|---|\n", strings.ToUpper(word[:1])+word[1:])
		}
		p.printf("| [%s](%s) | %s |\n", c.Name, pageName(c), cell(c.Summary))
	}
	if more := contrib.Missing(reg); len(more) > 0 {
		p.printf("\n## Contrib\n\nThe released command has these, too; `surfin build --with FAMILY` makes a program that has some.\n\n| name | kind | family | what it does |\n|---|---|---|---|\n")
		for _, c := range more {
			p.printf("| [%s](%s) | %s | %s | %s |\n", c.Name, c.Page(), c.Kind, c.Family, cell(c.Summary))
		}
	}
	return p.text.Bytes()
}

func jobFilePage(reg *registry.Registry) []byte {
	var p page
	p.printf("%s# The job file\n\nOne file, one job. Keys that are not named here are errors; at the top level those that begin with `x-` are ignored.\n", generated)
	p.section("Job", "The top level of the file.", reflect.TypeFor[language.Job]())
	p.section("Schedule", "When a job that is registered with a server is due: see [schedules](../jobfile.md#schedules). `surfin schedules` lists the next times.", reflect.TypeFor[language.Schedule]())
	p.section("Budget", "Limits for a run of the job by a server, or for the [tasks](#tasks) of a step.", reflect.TypeFor[language.Budget]())
	p.section("Parameter", "An entry of `parameters`, by its name.", reflect.TypeFor[language.Parameter]())
	p.section("Row field", "A field of a row type: an entry of `types`, or of a component's `item`. The type alone may be written directly: `id: int`.", reflect.TypeFor[language.Field]())
	p.printf("\n## Elements\n\nAn element of a flow is one of [step](#step), [decide](#decide), [split](#split), [flow](#flow), [atomic](#atomic) and [job](#child-job): " +
		"the key with its name tells the kind. [use](#use) is replaced by the elements of a template. Element names are identifiers and unique in the file; `end`, `fail` and `stop` are reserved. " +
		"A flow begins with its first element; elements lead to elements of the same list.\n")
	p.section("Step", "Some work: a `chunk`, a `tasklet` or `tasks`. A component is written `name` or `{name: {its config}}`.", reflect.TypeFor[language.Step]())
	p.section("Partition", "The parts of a step's work. Each part has a step execution STEP:PART of its own; a restart runs those that did not complete. "+
		"The partitioner defines `${part.NAME}` for the components of the step.", reflect.TypeFor[language.Partition]())
	p.section("Tasks", "Tasks that [handlers](../howto/tasks.md) execute, one for each item; the step ends when all of them have ended, and fails if one has not succeeded. "+
		"Its results are `steps.NAME.out.total`, `succeeded`, `failed`, `canceled` and `group`, ints, and `results`, the Json artifacts of the tasks in the order of the items, "+
		"as the text of a JSON array (null where it has more than 64 KB).", reflect.TypeFor[language.Tasks]())
	p.section("Decide", "It chooses one of several elements, by `choose`, or by a `decider` with `next`.", reflect.TypeFor[language.Decide]())
	p.section("Choice", "One path of a decision.", reflect.TypeFor[language.Choice]())
	p.section("Split", "Flows side by side.", reflect.TypeFor[language.Split]())
	p.section("Flow", "A flow as one element.", reflect.TypeFor[language.Flow]())
	p.section("Atomic", "Tasklet steps in one transaction: all of them commit, or none does. They work in one database.", reflect.TypeFor[language.Atomic]())
	p.section("Child job", "Another job file as one element, with an instance and executions of its own. Its results are `steps.NAME.out.execution`, `status` and `exit`, as texts.", reflect.TypeFor[language.Child]())
	p.section("Use", "It is replaced by the elements of a [template](#template), in a flow named `as` if given, or with `parallel` in a split.", reflect.TypeFor[language.Use]())
	p.section("Template", "An entry of `templates`, by its name: elements with arguments. It is expanded when the file is loaded; `surfin validate --expand FILE` shows the job without templates.", reflect.TypeFor[language.Template]())
	p.section("Argument", "An argument of a template. The type alone may be written directly: `table: string`.", reflect.TypeFor[language.Argument]())
	p.section("Chunk", "The work of a chunk step.", reflect.TypeFor[language.Chunk]())
	p.section("Retry", "Errors of reader and processor are retried item by item, errors of the writer with the whole chunk in a new transaction. A bare number is `limit`.", reflect.TypeFor[config.ItemRetryConfig]())
	p.section("Backoff", "The waits between attempts.", reflect.TypeFor[config.Backoff]())
	p.section("Skip", "One limit counts the items that failed in reader, processor and writer. A bare number is `limit`.", reflect.TypeFor[config.ItemSkipConfig]())
	p.classes(reg)
	p.section("Defaults", "Defaults for all steps. A step overrides them key by key, also in `retry`, `skip`, `backoff` and `transaction`. A list is one value.", reflect.TypeFor[language.Defaults]())
	p.section("Transaction", "The transaction of a tasklet step, or of each chunk.", reflect.TypeFor[language.Transaction]())
	p.printf("\n## Next\n\nA target is the name of an element of the same list, `end`, `fail`, `stop`, or one of the maps below. `next: TARGET` follows success. " +
		"`next: {PATTERN: TARGET}` follows an exit code that matches (`*` any characters, `?` one; the most specific pattern wins); " +
		"an unmatched exit code of an element that completed goes to the following one, and any other ends the flow with its outcome. " +
		"`end` and `fail` inside another element end that element's flow, and the element has that outcome; `stop` stops the job.\n")
	p.section("Target end, fail", "`{end: {...}}` or `{fail: {...}}`.", reflect.TypeFor[language.Exit]())
	p.section("Target stop", "`{stop: {...}}`.", reflect.TypeFor[language.Stop]())
	p.expressions()
	return p.text.Bytes()
}

func (p *page) classes(reg *registry.Registry) {
	p.printf("\n## Error classes\n\nThe names of `errors` and `except`. A class includes its parts. Of the listed names that match an error the most specific one decides, " +
		"whichever list it is in; between two that are equally specific, `except` does. An unmatched BatchError without a class decides itself. " +
		"Errors are classified by type and code, never by their text. A timeout of the step, a stop and a panic are never retried or skipped.\n\n" +
		"| class | part of | errors |\n|---|---|---|\n")
	for _, m := range reg.Matchers().All() {
		parent := ""
		if m.Parent != "" {
			parent = "`" + m.Parent + "`"
		}
		name := m.Name
		if reg.Matchers().Check(name) != nil {
			name += "(...)"
		}
		p.printf("| `%s` | %s | %s |\n", name, parent, cell(m.Doc))
	}
}

func (p *page) expressions() {
	p.printf("\n## Expressions\n\n`${...}` in the config of a component is replaced by the value of the expression inside; " +
		"a text that is one whole `${...}` keeps its type, which must fit the key. `$${` is a literal `${`; any other `$` is an ordinary character. " +
		"In SQL it becomes a bind variable. Keys of type *expression* are expressions themselves, over `item`, `meta`, `params` and `job`, without `${ }`. " +
		"An expression with `, : # ? ! * { [` or a leading quote goes in quotes or in a `|` block.\n\n" +
		"| name | value | known |\n|---|---|---|\n" +
		"| `with.NAME` | an argument of a template, in its steps | when the file is loaded |\n" +
		"| `params.NAME` | a parameter; one of type path is absolute | at launch |\n" +
		"| `env.NAME` | a variable of the environment; it must be set | at launch |\n" +
		"| `secret.NAME` | a secret, in the configs of components; it is masked wherever it is shown or stored | at launch |\n" +
		"| `job.name` | the job's name | at launch |\n" +
		"| `job.time` | when the instance was first launched, a timestamp: the same in all its attempts | at the start of the step |\n" +
		"| `job.execution` | the number of the execution, another one for each restart: not in row expressions and names of output files | at the start of the step |\n" +
		"| `job.instance` | the number of the instance, the same in all its attempts | at the start of the step |\n")
	for _, f := range language.StepNumbers() {
		p.printf("| `steps.NAME.%s` | a count of an earlier step, including the attempts that it resumed | at the start of the step |\n", f)
	}
	p.printf("| `steps.NAME.balanced` | whether every item is accounted for: `read + read_skipped == written + filtered + skipped`; an item that could not be read is in `read_skipped`, not in `read` | at the start of the step |\n")
	p.printf("| `steps.NAME.duration` | its time | at the start of the step |\n" +
		"| `steps.NAME.status`, `steps.NAME.exit` | its status and exit code; empty if it has not run | at the start of the step |\n" +
		"| `steps.NAME.out.KEY` | its result, of the type that its tasklet's `out` declares, else as a text | at the start of the step |\n" +
		"| `context.KEY` | a value of the job's context, as a text; null if there is none | at the start of the step |\n" +
		"| `part.NAME` | of the partition: `name`, `index`, and what the partitioner gives | in the components of a step with `partition` |\n" +
		"| `job.status`, `job.exit`, `job.error`, `job.failed_step` | how the flow ended; `failed_step` is empty if none failed | in `finally` and the job's `expect` |\n")
	p.printf("\n`when` and `expect` are expressions themselves, of type bool, without `${ }`, over all these names. " +
		"In the `expect` of a step its own numbers have no prefix: `balanced and written > 0`.\n")
	p.printf("\nThe default of a parameter may use functions, such as `${today()}`, the day in the job's time zone, and `${now()}`, and no names.\n")
	p.printf("\nThe parameters of a `schedule` may use functions and the scheduled time: `schedule.date` (a date, as its time zone has it), " +
		"`schedule.previous_day` (the date before), `schedule.time` (a timestamp) and `schedule.key` (a text such as `2026-10-25T02:30`).\n")
}

func (p *page) section(title, intro string, t reflect.Type) {
	p.printf("\n## %s\n\n%s\n", title, intro)
	p.keys(t)
}

func (p *page) component(c registry.Component) {
	p.printf("%s# %s `%s`\n\n%s\n", generated, c.Kind, c.Name, c.Summary)
	if c.Doc != "" {
		p.printf("\n%s\n", strings.TrimSpace(c.Doc))
	}
	if c.Config == nil {
		p.printf("\nIt takes no configuration.\n")
	} else {
		p.printf("\n## Configuration\n")
		p.keys(c.Config)
		p.shorthand(c)
	}
	if c.Example != "" {
		p.printf("\n## Example\n\n```yaml\n%s\n```\n", exampleOf(c))
	}
}

func exampleOf(c registry.Component) string {
	text, key := strings.TrimRight(c.Example, "\n"), string(c.Kind)
	if strings.HasPrefix(text, "job:") || strings.HasPrefix(text, "places:") { // a place is of surfin.yaml
		return text
	}
	switch c.Kind {
	case registry.KindPartitioner:
		key = "partition"
	case registry.KindListener:
		key = "listeners"
	case registry.KindReader, registry.KindProcessor, registry.KindWriter, registry.KindTasklet, registry.KindDecider:
	}
	if strings.HasPrefix(text, key+":") {
		return text
	}
	if c.Kind == registry.KindPartitioner {
		return "partition:\n  by:\n    " + strings.ReplaceAll(text, "\n", "\n    ")
	}
	return key + ":\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}

func (p *page) shorthand(c registry.Component) {
	keys := yamlfile.FieldsOf(c.Config)
	if main, ok := keys.Main(); ok && !main.Rest {
		p.printf("\n`%s` may be given directly: `%s: ...`.\n", main.Key, c.Name)
	}
	if rest, ok := keys.Rest(); ok {
		p.printf("\nAll other keys are entries of *%s*: %s\n", rest.Key, rest.Doc)
	}
	if !needsConfig(c) {
		p.printf("\nThe name alone is enough: `%s`.\n", c.Name)
	}
}

func (p *page) keys(t reflect.Type) {
	keys := yamlfile.FieldsOf(t)
	p.printf("\n| key | type | default | meaning |\n|---|---|---|---|\n")
	p.rows("", keys)
	if len(keys.Later) > 0 {
		later := slices.Sorted(slices.Values(keys.Later))
		p.printf("\nKnown, and not supported by this version yet: `%s`.\n", strings.Join(later, "`, `"))
	}
}

func (p *page) rows(prefix string, keys yamlfile.Keys) {
	for _, f := range keys.Fields {
		if f.Rest {
			continue
		}
		def := ""
		switch {
		case f.Required:
			def = "required"
		case f.HasDefault && f.Default == "":
			def = `""`
		case f.HasDefault:
			def = "`" + f.Default + "`"
		}
		p.printf("| `%s` | %s | %s | %s |\n", prefix+f.Key, cell(typeWord(f.Type, f)), cell(def), cell(f.Doc))
		if inner, ok := nested(f.Type); ok && (prefix == "" || inner == reflect.TypeFor[language.ChunkDefaults]()) && f.Kind == "" {
			p.rows(f.Key+".", yamlfile.FieldsOf(inner))
		}
	}
}

func nested(t reflect.Type) (reflect.Type, bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t, t.Kind() == reflect.Struct && sectionWord(t) == keysBelow && t != reflect.TypeFor[registry.SQL]() && t != reflect.TypeFor[registry.Expression]() && t != reflect.TypeFor[registry.Nested]() &&
		t != reflect.TypeFor[registry.NamedExpression]()
}

func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}

func typeWord(t reflect.Type, f yamlfile.Field) string {
	words := map[reflect.Type]string{
		reflect.TypeFor[time.Duration]():          "duration (`90s`)",
		reflect.TypeFor[registry.Size]():          "size (`64KB`)",
		reflect.TypeFor[language.Workers]():       "int, or `auto`",
		reflect.TypeFor[partcount.Number]():       "int, or `auto`",
		reflect.TypeFor[registry.SQL]():           "SQL",
		reflect.TypeFor[registry.JSON]():          "any value, as JSON",
		reflect.TypeFor[registry.Expression]():    "expression",
		reflect.TypeFor[registry.Expressions]():   "map of expressions",
		reflect.TypeFor[item.Type]():              "item type",
		reflect.TypeFor[language.RawText]():       "value of the type",
		reflect.TypeFor[language.ComponentRef]():  f.Kind,
		reflect.TypeFor[registry.Nested]():        f.Kind,
		reflect.TypeFor[language.ComponentRefs](): f.Kind + ", or a list",
		reflect.TypeFor[language.Items]():         "list, or " + f.Kind,
		reflect.TypeFor[language.Placement]():     "map of text, or text",
		reflect.TypeFor[language.Next]():          "[next](#next)",
		reflect.TypeFor[language.Row]():           "map of [row fields](#row-field)",
	}
	if word, is := words[t]; is {
		return word
	}
	if c, ok := reflect.Zero(t).Interface().(registry.Choice); ok && c.Page() != "" {
		return "[one of these](" + c.Page() + ")"
	}
	if m, ok := reflect.Zero(t).Interface().(interface{ Elem() reflect.Type }); ok {
		if m.Elem() == reflect.TypeFor[language.RawText]() {
			return "map of text"
		}
		return "map of " + typeWord(m.Elem(), f)
	}
	return kindWord(t, f)
}

func kindWord(t reflect.Type, f yamlfile.Field) string {
	switch t.Kind() {
	case reflect.Pointer:
		return typeWord(t.Elem(), f)
	case reflect.Slice:
		if f.Kind == language.MatcherKind {
			return "list of [error classes](#error-classes)"
		}
		return "list of " + typeWord(t.Elem(), f)
	case reflect.Map:
		return "map of " + typeWord(t.Elem(), f)
	case reflect.Struct:
		return sectionWord(t)
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "int"
	case reflect.Float32, reflect.Float64:
		return "float"
	default:
		if len(f.Enum) > 0 {
			return "`" + strings.Join(f.Enum, "`, `") + "`"
		}
		switch {
		case f.Path:
			return "path"
		case f.Literal:
			return "text, `${...}` in it as it is"
		}
		return "text"
	}
}

func sectionWord(t reflect.Type) string {
	words := map[reflect.Type]string{
		reflect.TypeFor[language.Parameter]():     "[parameter](#parameter)",
		reflect.TypeFor[language.Schedule]():      "[schedule](#schedule)",
		reflect.TypeFor[language.Budget]():        "[budget](#budget)",
		reflect.TypeFor[language.Element]():       "[element](#elements)",
		reflect.TypeFor[language.Tasks]():         "[tasks](#tasks)",
		reflect.TypeFor[language.Partition]():     "[partition](#partition)",
		reflect.TypeFor[language.Choice]():        "[choice](#choice)",
		reflect.TypeFor[language.ConditionText](): "expression",
		reflect.TypeFor[language.TargetText]():    "[target](#next)",
		reflect.TypeFor[language.Chunk]():         "[chunk](#chunk)",
		reflect.TypeFor[language.Transaction]():   "[transaction](#transaction)",
		reflect.TypeFor[config.ItemRetryConfig](): "[retry](#retry)",
		reflect.TypeFor[config.Backoff]():         "[backoff](#backoff)",
		reflect.TypeFor[config.ItemSkipConfig]():  "[skip](#skip)",
		reflect.TypeFor[language.Defaults]():      "[defaults](#defaults)",
		reflect.TypeFor[language.Template]():      "[template](#template)",
		reflect.TypeFor[language.Argument]():      "[argument](#argument), or its type",
		reflect.TypeFor[language.TemplateSteps](): "list of [element](#elements)",
		reflect.TypeFor[language.AnyValue]():      "any value",
		reflect.TypeFor[language.ArgumentLists](): "list of maps",
		reflect.TypeFor[language.Include]():       "path, or a list",
	}
	return cmp.Or(words[t], keysBelow)
}

const keysBelow = "keys below"
