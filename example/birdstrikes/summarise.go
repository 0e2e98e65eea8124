package main

import (
	"context"
	"fmt"

	"github.com/surfin-batch/surfin/pkg/batch"
	"github.com/surfin-batch/surfin/pkg/batch/tx"
)

// Summarise counts strikes by species, in its step's transaction.
type Summarise struct{ databases tx.Provider }

// NewSummarise returns the tasklet.
func NewSummarise(databases tx.Provider) *Summarise { return &Summarise{databases} }

// Execute empties and fills the table species_summary.
func (s *Summarise) Execute(ctx context.Context, c *batch.StepContribution) error {
	db, err := s.databases.Database(tx.Default)
	if err != nil {
		return err
	}
	year, err := c.Params.Int("year")
	if err != nil {
		return err
	}
	since := fmt.Sprintf("%d-01-01", year)
	conn := tx.ConnOf(ctx, db)
	if _, err := conn.ExecContext(ctx, "delete from species_summary"); err != nil {
		return fmt.Errorf("empty the summary: %w", err)
	}
	result, err := conn.ExecContext(ctx, `
		insert into species_summary (species, strikes, damaging, cost, mean_speed)
		select species, count(*), sum(case when damaged then 1 else 0 end), sum(cost), cast(round(avg(speed)) as bigint)
		from strikes where date >= `+db.Dialect().Placeholder(1)+` group by species`, since)
	if err != nil {
		return fmt.Errorf("fill the summary: %w", err)
	}
	c.Counters.Write, err = result.RowsAffected()
	return err
}
