package main

import "github.com/surfin-batch/surfin/pkg/batch/core"

// State is the state of an order: a fact of the business, not what a screen shows.
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

// Trigger is what happens to an order, and the name of the move that it asks for.
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
	move := func(t Trigger, to State, intent core.Intent, from ...State) core.Move[State] {
		return core.Move[State]{Name: string(t), From: from, To: to, Intent: intent}
	}
	return core.NewMachine("order",
		move(StockReserveSucceeded, StockReserved, core.IntentBegin, Created).Because(
			"the stock has the item", "", "stock that is taken twice"),
		move(StockReserveFailed, Failed, core.IntentEnd, Created).Because(
			"the stock lacks the item", "", "a failure after the stock was taken"),
		move(PaymentRequested, PaymentPending, core.IntentBegin, StockReserved).Because(
			"the customer is asked to pay", "", "a payment for what is not there"),
		move(PaymentSucceeded, Paid, core.IntentBegin, PaymentPending).Because(
			"the payment service", "", "an order that is paid twice"),
		move(PaymentFailed, Failed, core.IntentEnd, PaymentPending).Because(
			"the payment service", "", "a late failure that undoes a payment"),
		move(HandoverCompleted, Completed, core.IntentEnd, Paid).Because(
			"the counter", "", "coffee that is not paid"),
		move(CancelRequested, Cancelled, core.IntentEnd, Created, StockReserved, PaymentPending).Because(
			"the customer", "", "the cancellation of what is paid"),
	)
}
