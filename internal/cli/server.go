package cli

import (
	"github.com/spf13/pflag"

	"github.com/surfin-batch/surfin/pkg/batch/settings"
)

type serverCommands struct{ env *environment }

type settingValue struct {
	env             *environment
	name, key, text string
}

func (v *settingValue) String() string { return v.text }
func (v *settingValue) Type() string   { return "string" }
func (v *settingValue) Set(text string) error {
	v.text = text
	v.env.flags = append(v.env.flags, settings.Flag{Name: v.name, Key: v.key, Value: text})
	return nil
}

func labelFlag(f *pflag.FlagSet, labels *[]string) {
	f.StringSliceVar(labels, "label", nil, "label `KEY=VALUE` for work with 'on: {KEY: VALUE}'; repeat it for more (default: worker.labels)")
}
