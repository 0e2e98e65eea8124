package define

import "github.com/surfin-batch/surfin/pkg/batch/core/registry"

// Config is a component's configuration by the keys of job files.
type Config map[string]any

// Component is a reader, processor, writer, tasklet, listener, partitioner or decider: registered
// ([Use]) or Go code ([Inline]).
type Component struct {
	name   string
	config any
	inline *Code
}

// Use is a registered component. config is a [Config], the value of the main key, or a
// struct with the tags of its configuration; zero fields are left out.
func Use(name string, config ...any) Component {
	c := Component{name: name}
	if len(config) > 0 {
		c.config = config[0]
	}
	return c
}

func (c Component) isZero() bool { return c.name == "" && c.inline == nil }

// Code is a component that is Go code.
type Code struct {
	Kind registry.Kind
	Type string
	Err  error
	Made any
}

// Inline is a component that is Go code.
func Inline(c Code) Component { return Component{inline: &c} }

// Named is Go code with its name in the definition.
type Named struct {
	Name string
	Code
}

// CodeConfig is the configuration of components that are Go code.
type CodeConfig struct {
	// Type is the Go type: another one is another definition (rule F4).
	Type string `key:"go" main:"true" literal:"true" doc:"The Go type."`
}
