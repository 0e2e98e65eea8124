package runtime

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/surfin-batch/surfin/internal/ports"
	"github.com/surfin-batch/surfin/internal/ports/taskports"
	"github.com/surfin-batch/surfin/internal/runtime/engine"
)

// PlacingConfig configures a Placing.
type PlacingConfig struct {
	Places   []ports.Places
	Workers  func(ctx context.Context) ([]taskports.Worker, error)
	Settings taskports.Settings
	Engine   engine.Engine
}

// Placing assigns work with a placement to workers with free slots (rules PL2
// to PL4). The leader runs it.
type Placing struct {
	config PlacingConfig
	// backlog: work waits for slots, and is assigned soon after one is free.
	backlog bool
}

// NewPlacing checks the configuration.
func NewPlacing(c PlacingConfig) (*Placing, error) {
	if len(c.Places) == 0 || c.Workers == nil || c.Settings == nil || c.Engine == nil {
		return nil, errors.New("assigning work needs placements, workers, settings and an engine")
	}
	return &Placing{config: c}, nil
}

// Duties are to assign work, to end placements, and, if the engine may lose
// deliveries, to deliver assigned work again.
func (p *Placing) Duties(every, lost time.Duration) []Duty {
	duties := []Duty{{Name: "assign work to workers", Every: every, Led: p.assign, Hurry: func() bool { return p.backlog }}, {Name: "end placements", Every: lost, Led: p.end}}
	if p.config.Engine.Capabilities().Loses {
		duties = append(duties, Duty{Name: "deliver assigned work again", Every: lost, Do: p.redeliver})
	}
	return duties
}

func (p *Placing) assign(ctx context.Context, leader int64) (more bool, err error) {
	settings, err := p.config.Settings.Settings(ctx)
	if err != nil {
		return false, err
	}
	p.backlog = false
	after := time.Duration(taskports.SettingIn(settings, taskports.ReassignAfter)) * time.Second
	var waiting []ports.Placed
	o := &office{placing: p, pause: min(after, returnedPause)}
	for _, places := range p.config.Places {
		n, err := places.OrphanPlaced(ctx, after, leader, sweepLimit)
		if err != nil {
			return false, err
		}
		more = more || n == sweepLimit
		found, err := places.Unassigned(ctx, func(c ports.PlacedClass) ports.Room { return o.room(ctx, c) })
		if err = errors.Join(o.err, err); err != nil {
			return false, err
		}
		waiting = append(waiting, found...)
	}
	slices.SortStableFunc(waiting, func(a, b ports.Placed) int { return cmp.Or(a.Priority-b.Priority, a.Since.Compare(b.Since)) })
	var deliveries []engine.Delivery
	for _, work := range waiting {
		if len(deliveries) == sweepLimit {
			more = true
			break
		}
		d, err := p.assignOne(ctx, work, o, leader)
		if err != nil {
			return false, err
		}
		if d != nil {
			deliveries = append(deliveries, *d)
		}
	}
	return more, p.config.Engine.Enqueue(ctx, deliveries...)
}

// assignOne prefers the most free slots; nil if none, or the work does not wait
// any more.
func (p *Placing) assignOne(ctx context.Context, work ports.Placed, o *office, leader int64) (*engine.Delivery, error) {
	w := o.best(work)
	if w == nil {
		p.backlog = true
		return nil, nil
	}
	for _, places := range p.config.Places {
		epoch, err := places.AssignPlaced(ctx, work, w.Name, leader)
		if err != nil {
			return nil, err
		}
		if epoch != 0 {
			w.Busy++
			work.Epoch = epoch
			d := placedDelivery(work, w.Name)
			return &d, nil
		}
	}
	return nil, nil
}

func (p *Placing) end(ctx context.Context, leader int64) (more bool, err error) {
	for _, places := range p.config.Places {
		n, err := places.EndPlaced(ctx, leader, sweepLimit)
		if err != nil {
			return false, err
		}
		more = more || n == sweepLimit
	}
	return more, nil
}

func (p *Placing) redeliver(ctx context.Context) (bool, error) {
	workers, err := p.config.Workers(ctx)
	if err != nil {
		return false, err
	}
	for _, w := range workers {
		if w.State != taskports.WorkerActive {
			continue
		}
		found, err := assignedTo(ctx, p.config.Places, w.Name, sweepLimit)
		if err != nil {
			return false, err
		}
		missing, err := p.config.Engine.Missing(ctx, found...)
		if err == nil {
			err = p.config.Engine.Enqueue(ctx, missing...)
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

func assignedTo(ctx context.Context, all []ports.Places, worker string, limit int) ([]engine.Delivery, error) {
	var list []engine.Delivery
	for _, places := range all {
		found, err := places.AssignedTo(ctx, worker, limit)
		if err != nil {
			return nil, err
		}
		for _, work := range found {
			list = append(list, placedDelivery(work, worker))
		}
	}
	return list, nil
}

// office reads them when work waits.
type office struct {
	placing *Placing
	pause   time.Duration // that of ports.Room
	asked   bool
	workers []taskports.Worker
	err     error
}

func (o *office) ask(ctx context.Context) {
	if o.asked {
		return
	}
	o.asked = true
	o.workers, o.err = Loaded(ctx, o.placing.config.Workers, o.placing.config.Places)
}

// Loaded returns the workers with their used slots.
func Loaded(ctx context.Context, workers func(ctx context.Context) ([]taskports.Worker, error), all []ports.Places) ([]taskports.Worker, error) {
	list, err := workers(ctx)
	loads := map[string]int{}
	for _, places := range all {
		if err == nil {
			err = places.LoadOf(ctx, loads)
		}
	}
	for i := range list {
		list[i].Busy = loads[list[i].Name]
	}
	return list, err
}

func (o *office) room(ctx context.Context, c ports.PlacedClass) (room ports.Room) {
	o.ask(ctx)
	room.Pause = o.pause
	kind := ports.PlacedTask
	if c.Type == "" {
		kind = ports.PlacedPart
	}
	for i := range o.workers {
		w := &o.workers[i]
		if w.MayDo(ports.Placed{Kind: kind, On: c.On, Type: c.Type}) {
			room.Free += w.Free()
			room.Deciders = append(room.Deciders, w.Deciders...)
			room.Workers++
		}
	}
	o.placing.backlog = o.placing.backlog || room.Workers > 0 && room.Free == 0
	if room.Free > 0 {
		room.Free++ // one more than can be assigned reveals a backlog
	}
	return room
}

// returnedPause is for work that all fitting workers have given back.
const returnedPause = 5 * time.Second

func (o *office) best(work ports.Placed) *taskports.Worker {
	if work.State == ports.PlaceOrphaned && slices.ContainsFunc(o.workers, func(w taskports.Worker) bool { return w.Name == work.Worker && w.MayDo(work) }) {
		return o.after(work)
	}
	var best *taskports.Worker
	for i := range o.workers {
		w := &o.workers[i]
		if w.Free() == 0 || !w.MayDo(work) {
			continue
		}
		if best == nil || best.Name == work.Worker || w.Name != work.Worker && w.Free() > best.Free() {
			best = w
		}
	}
	return best
}

// after is the next by name: no worker gets it twice before the others had it.
func (o *office) after(work ports.Placed) *taskports.Worker {
	var next *taskports.Worker
	for i := range o.workers {
		w := &o.workers[i]
		if w.Free() == 0 || !w.MayDo(work) {
			continue
		}
		later, nextLater := w.Name > work.Worker, next != nil && next.Name > work.Worker
		if next == nil || later && !nextLater || later == nextLater && w.Name < next.Name {
			next = w
		}
	}
	return next
}
