package durable

import "fmt"

// optionSet records which options of one call were given. Each bit is one option, or several options that exclude each other.
// Without an optionSet, the last of two options that exclude each other would apply without an error.
type optionSet uint16

// addOnce records the option. It returns ErrInvalidConfig if an option with the same bit was recorded before.
func (g *optionSet) addOnce(bit optionSet, option string) error {
	if *g&bit != 0 {
		return fmt.Errorf("%w: the option %s is given twice, or beside another that it excludes: leave one of them out", ErrInvalidConfig, option)
	}
	*g |= bit
	return nil
}

// givenOptions records which options of one call were given, and their first error.
type givenOptions struct {
	given optionSet
	err   error
}

// setFirstError records the error, if it is not nil and the first.
func (o *givenOptions) setFirstError(err error) {
	if o.err == nil {
		o.err = err
	}
}

// addOptionOnce records that the option was given, and fails if an option with the same bit was given before.
func (o *givenOptions) addOptionOnce(bit optionSet, option string) {
	o.setFirstError(o.given.addOnce(bit, option))
}
