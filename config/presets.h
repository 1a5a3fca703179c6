/* config/presets.h: the texts of presets that have a file of their own; rules_preset_text() finds them by name. */
#ifndef CONFIG_PRESETS_H
#define CONFIG_PRESETS_H

extern const char preset_wordpress[], preset_woocommerce[];
extern const char preset_drupal[], preset_magento[];
#endif
