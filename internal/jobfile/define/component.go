package define

import "github.com/surfin-batch/surfin/pkg/batch/core/registry"

// Config is the configuration of a component by the keys of job files. Values are texts, which may contain
// ${...}, numbers, bools, durations, lists, Configs, and the types of configuration structs.
type Config map[string]any

// Component is a reader, processor, writer, tasklet, listener, partitioner or decider, either registered
// ([Use]) or Go code ([Inline]).
type Component struct {
	name   string
	config any
	inline *Code
}

// Use is a component that is shipped or registered, by its name. config is a [Config], the value of the
// component's main key, as in define.Use("sql", "delete from log"), or its configuration struct; zero fields
// of the struct are left out so that their defaults apply.
func Use(name string, config ...any) Component {
	c := Component{name: name}
	if len(config) > 0 {
		c.config = config[0]
	}
	return c
}

func (c Component) isZero() bool { return c.name == "" && c.inline == nil }

// Code is a component that is Go code. Package batch makes them.
type Code struct {
	Kind registry.Kind
	// Type is the Go type that the constructor returns. It is part of the definition's text.
	Type string
	// Err is the reason why it cannot be used.
	Err error
	// Made is the value from which package batch makes the component.
	Made any
}

// Inline is a component that is Go code.
func Inline(c Code) Component { return Component{inline: &c} }

// Named is a component of Go code with the name that it has in the definition.
type Named struct {
	Name string
	Code
}

// CodeConfig is the configuration of components that are Go code.
type CodeConfig struct {
	// Type is the Go type, so that another type is another definition (rule F4).
	Type string `key:"go" main:"true" literal:"true" doc:"The Go type."`
}
