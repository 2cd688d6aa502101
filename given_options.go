package durable

import "fmt"

// optionSet records which options of one call were given. Each bit is one option, or several options that exclude each other. It
// exists because the last of two such options would otherwise win without an error.
type optionSet uint16

// addOnce records the option. It returns ErrInvalidConfig if an option with the same bit was recorded before.
func (g *optionSet) addOnce(bit optionSet, option string) error {
	if *g&bit != 0 {
		return fmt.Errorf("%w: the option %s is given twice, or beside another that it excludes: leave one of them out", ErrInvalidConfig, option)
	}
	*g |= bit
	return nil
}

// commonOptions are what the options of one call record: which of them were given, and the first error.
type commonOptions struct {
	given optionSet
	err   error
}

// fail records the error, if it is not nil and the first.
func (o *commonOptions) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// addOption records that the option was given, and fails if an option with the same bit was given before.
func (o *commonOptions) addOption(bit optionSet, option string) {
	o.fail(o.given.addOnce(bit, option))
}
