package durable

import "fmt"

// Defaults sets options for all steps of the workflow, its Tx steps, the items of its Maps and its compensations. The options
// of a single call override the Defaults of the workflow. If a call has [Retry] or [AtMostOnce], neither the default Retry nor
// the default AtMostOnce applies to the call. If a call has an AttemptTimeout or a TotalTimeout, the same timeout in Defaults
// does not apply to the call, and neither does a default that contradicts the call's timeout. To undo a default for one call,
// give the call [Retry]([NoRetry]) or a longer timeout.
//
// The options that Defaults takes are Retry, [AttemptTimeout], [TotalTimeout], AtMostOnce and the Permit of a [Limit]. Options
// that concern a single call, such as [Verify] and [Undoes], make [New] and every start return [ErrInvalidConfig].
//
// A change of Defaults applies from the next attempt on, even in live runs.
func Defaults(opts ...StepOption) WorkflowOption {
	return func(o *workflowOptions) {
		d := &stepOptions{}
		d.setFirstError(applyOptions(opts, d))
		switch single := optionVerify | optionUndoes; {
		case d.given&single != 0 || d.transact != nil:
			d.setFirstError(fmt.Errorf("%w: Defaults takes Retry, AttemptTimeout, TotalTimeout, AtMostOnce and Permit: give other options to the step itself", ErrInvalidConfig))
		default:
			d.setFirstError(d.check())
		}
		o.addOptionOnce(optionDefaults, "Defaults")
		if d.err != nil {
			o.setFirstError(fmt.Errorf("Defaults: %w", d.err))
		}
		o.stepDefaults = d
	}
}

// check returns an error if the options contradict each other.
func (o *stepOptions) check() error {
	switch {
	case o.totalTimeout > 0 && o.attemptTimeout > o.totalTimeout:
		return fmt.Errorf("%w: AttemptTimeout of %v has no effect beside a TotalTimeout of %v: make it shorter, or leave it out", ErrInvalidConfig, o.attemptTimeout, o.totalTimeout)
	case o.hasRetries() && o.atMostOnce:
		return fmt.Errorf("%w: both AtMostOnce and a retry policy: at most one attempt is made, so leave one of them out", ErrInvalidConfig)
	}
	return nil
}

// hasRetries reports whether a failed attempt is followed by another one.
func (o *stepOptions) hasRetries() bool { return o.retry != nil && o.retry.Attempts > 1 }

// addDefaults sets what the call leaves open, unless it contradicts an option of the call.
func (o *stepOptions) addDefaults(d *stepOptions) {
	if o.given&(optionRetry|optionAtMostOnce|optionVerify) == 0 {
		o.retry, o.atMostOnce = d.retry, d.atMostOnce
	}
	own := *o
	if own.given&optionAttemptTimeout == 0 && (own.totalTimeout == 0 || d.attemptTimeout <= own.totalTimeout) {
		o.attemptTimeout = d.attemptTimeout
	}
	if own.given&optionTotalTimeout == 0 && d.totalTimeout >= own.attemptTimeout {
		o.totalTimeout = d.totalTimeout
	}
	if own.given&optionPermit == 0 {
		o.permit = d.permit
	}
}
