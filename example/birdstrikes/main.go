// Command birdstrikes is jobs/birdstrikes.yaml as a Go application: the same load, summary and export, with
// its own types, rules and report.
//
//	go run ./example/birdstrikes run example/birdstrikes/birdstrikes.yaml
//
// It has every other command of surfin: validate, list, show, restart, ...
//
// It imports pkg/batch and the packages below it, as any application may.
package main

import (
	"context"
	"strings"

	"go.uber.org/fx"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/cli"
)

func main() {
	cli.Main(
		batch.Item[Strike]("strike"),
		batch.Item[Row]("strike_row"),
		batch.Item[Summary]("summary"),
		batch.Processor[Strike, Row]("clean", NewClean, batch.Summary("rules for strikes before they are stored")),
		batch.Tasklet("summarise", NewSummarise, batch.Summary("fill species_summary from strikes")),
		fx.Provide(NewTaxonomy),
	)
}

// Strike is one line of the FAA's file.
type Strike struct {
	Date     batch.Date `from:"Flight Date"`
	Airport  string     `from:"Airport Name"`
	State    string     `from:"Origin State"`
	Operator string     `from:"Aircraft Airline Operator"`
	Aircraft string     `from:"Aircraft Make Model"`
	Phase    string     `from:"Phase of flight"`
	Species  string     `from:"Wildlife Species"`
	Damage   string     `from:"Effect Amount of damage"`
	Cost     int64      `from:"Cost Total $"`
	Speed    *int64     `from:"Speed IAS in knots"`
}

// Row is one row of the table strikes.
type Row struct {
	Line                                               int64
	Date                                               batch.Date
	Airport, State, Operator, Aircraft, Phase, Species string
	Damaged                                            bool
	Cost                                               int64
	Speed                                              *int64
}

// Summary is one row of the table species_summary.
type Summary struct {
	Species                 string
	Strikes, Damaging, Cost int64
	MeanSpeed               *int64
}

// Taxonomy knows the names of species: a dependency of Clean, by fx.
type Taxonomy struct{}

// NewTaxonomy returns the taxonomy.
func NewTaxonomy() *Taxonomy { return &Taxonomy{} }

// Name is the name under which a reported species is counted.
func (*Taxonomy) Name(reported string) string {
	if strings.HasPrefix(reported, "Unknown") {
		return "unknown"
	}
	return strings.ToLower(reported)
}

// CleanConfig is the config of `clean` in a job file.
type CleanConfig struct {
	Year int `key:"year" required:"true" doc:"strikes before this year are left out"`
}

// Clean leaves out rows that are too old and brings the rest into the table's form.
type Clean struct {
	config   CleanConfig
	taxonomy *Taxonomy
}

// NewClean returns the processor.
func NewClean(config CleanConfig, taxonomy *Taxonomy) *Clean { return &Clean{config, taxonomy} }

// Process answers the row of a strike.
func (c *Clean) Process(ctx context.Context, s Strike) (Row, error) {
	return c.ProcessMeta(ctx, s, batch.Meta{})
}

// ProcessMeta is called instead: the line of the file is the table's key.
func (c *Clean) ProcessMeta(_ context.Context, s Strike, meta batch.Meta) (Row, error) {
	if s.Date.Year() < c.config.Year {
		return Row{}, batch.ErrFilter
	}
	return Row{
		Line: meta.Line, Date: s.Date, Airport: strings.TrimSpace(s.Airport), State: s.State,
		Operator: strings.Trim(s.Operator, "*"), Aircraft: s.Aircraft, Phase: strings.ToLower(s.Phase),
		Species: c.taxonomy.Name(s.Species), Damaged: s.Damage != "None", Cost: s.Cost, Speed: s.Speed,
	}, nil
}
