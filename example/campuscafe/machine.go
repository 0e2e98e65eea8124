package main

import "github.com/surfin-batch/surfin/pkg/batch/core"

// State is the state of an order: a fact of the business, not of a screen.
type State string

// The states. An order rests in the last three.
const (
	Created        State = "Created"
	StockReserved  State = "StockReserved"
	PaymentPending State = "PaymentPending"
	Paid           State = "Paid"
	Completed      State = "Completed"
	Cancelled      State = "Cancelled"
	Failed         State = "Failed"
)

// Trigger is an event of an order, and the name of the move that it requests.
type Trigger string

// The triggers.
const (
	StockReserveSucceeded Trigger = "StockReserveSucceeded"
	StockReserveFailed    Trigger = "StockReserveFailed"
	PaymentRequested      Trigger = "PaymentRequested"
	PaymentSucceeded      Trigger = "PaymentSucceeded"
	PaymentFailed         Trigger = "PaymentFailed"
	HandoverCompleted     Trigger = "HandoverCompleted"
	CancelRequested       Trigger = "CancelRequested"
)

// machine is the transition table: the UPDATE, the tests and README.md read it.
func machine() (core.Machine[State], error) {
	return core.NewMachine("order",
		core.Move[State]{Name: string(StockReserveSucceeded), From: []State{Created}, To: StockReserved, Intent: core.IntentBegin,
			Trigger: "the stock has the item", Prevents: "stock that is taken twice"},
		core.Move[State]{Name: string(StockReserveFailed), From: []State{Created}, To: Failed, Intent: core.IntentEnd,
			Trigger: "the stock lacks the item", Prevents: "a failure after the stock was taken"},
		core.Move[State]{Name: string(PaymentRequested), From: []State{StockReserved}, To: PaymentPending, Intent: core.IntentBegin,
			Trigger: "the customer is asked to pay", Prevents: "a payment for what is not there"},
		core.Move[State]{Name: string(PaymentSucceeded), From: []State{PaymentPending}, To: Paid, Intent: core.IntentBegin,
			Trigger: "the payment service", Prevents: "an order that is paid twice"},
		core.Move[State]{Name: string(PaymentFailed), From: []State{PaymentPending}, To: Failed, Intent: core.IntentEnd,
			Trigger: "the payment service", Prevents: "a late failure that undoes a payment"},
		core.Move[State]{Name: string(HandoverCompleted), From: []State{Paid}, To: Completed, Intent: core.IntentEnd,
			Trigger: "the counter", Prevents: "coffee that is not paid"},
		core.Move[State]{Name: string(CancelRequested), From: []State{Created, StockReserved, PaymentPending}, To: Cancelled, Intent: core.IntentEnd,
			Trigger: "the customer", Prevents: "the cancellation of what is paid"},
	)
}
